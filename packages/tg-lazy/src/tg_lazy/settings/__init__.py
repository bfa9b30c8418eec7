"""What holds for the length of a ``with`` block: settings, and the scopes that change them and put them back."""
