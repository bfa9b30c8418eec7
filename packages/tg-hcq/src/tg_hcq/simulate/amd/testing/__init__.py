"""What tests of a software AMD GPU stand on."""
