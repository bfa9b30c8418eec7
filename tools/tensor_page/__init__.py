"""What every method of Tensor does where: a page that is written from a run. See :mod:`tools.tensor_page.__main__`."""
