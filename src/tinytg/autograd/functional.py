"""Derivatives of functions at given arguments; see :mod:`tg_frontend.transform.functional`."""

from tg_frontend.transform.functional import hessian, hvp, jacobian, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
