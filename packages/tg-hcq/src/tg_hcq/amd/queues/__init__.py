"""Words for the queues of AMD's cards: PM4 for compute, SDMA packets for copies."""
