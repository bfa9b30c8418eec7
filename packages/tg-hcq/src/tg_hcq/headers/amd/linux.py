"""Which versions of Linux know the architectures of this driver, by KFD's numbers.

Made by ``python -m tools.amd_kernels`` from ``amdgpu_discovery.c``, ``kfd_device.c`` and the lists of chips of these:

  Linux 6.1: linux-source-6.1, 6.1.192
  Linux 6.2: drm-kmod, commit 1cfd672153
  Linux 6.3: drm-kmod, commit 0e47802c23
  Linux 6.4: drm-kmod, commit e86ac3725c
  Linux 6.5: drm-kmod, commit 24d845cd4f
  Linux 6.6: drm-kmod, commit ad81525551
  Linux 6.7: drm-kmod, commit 3e26dfe6a6
  Linux 6.8: drm-kmod, commit 36e989a3cb
  Linux 6.9: drm-kmod, commit 74e5e60b7c
  Linux 6.10: drm-kmod, commit 97acd04c2e
  Linux 6.11: drm-kmod, commit bb67bda394
  Linux 6.12: linux-source-6.12, 6.12.117
  Linux 7.2: linux-source-7.2, 7.2.13
"""

GRAPHICS_SEEN = (
    (6, 1),
    (6, 2),
    (6, 3),
    (6, 4),
    (6, 5),
    (6, 6),
    (6, 7),
    (6, 8),
    (6, 9),
    (6, 10),
    (6, 11),
    (6, 12),
    (7, 2),
)
"""The versions whose amdgpu was at hand."""
GRAPHICS = {
    90402: (6, 5),
    90500: (7, 2),
    100300: (6, 1),
    100301: (6, 1),
    100302: (6, 1),
    100303: (6, 1),
    100304: (6, 1),
    100305: (6, 1),
    100306: (6, 1),
    110000: (6, 1),
    110001: (6, 1),
    110002: (6, 1),
    110003: (6, 1),
    110500: (6, 7),
    110501: (6, 9),
    110502: (6, 11),
    110503: (7, 2),
    120000: (6, 11),
    120001: (6, 11),
}
"""The first of them that loads the graphics and copy blocks of each architecture."""

COMPUTE_SEEN = (
    (6, 1),
    (6, 12),
    (7, 2),
)
"""The versions whose amdkfd was at hand."""
COMPUTE = {
    90402: (6, 12),
    90500: (7, 2),
    100300: (6, 1),
    100301: (6, 1),
    100302: (6, 1),
    100303: (6, 1),
    100304: (6, 1),
    100305: (6, 1),
    100306: (6, 1),
    110000: (6, 1),
    110001: (6, 1),
    110002: (6, 1),
    110003: (6, 1),
    110500: (6, 12),
    110501: (6, 12),
    110502: (6, 12),
    110503: (7, 2),
    120000: (6, 12),
    120001: (6, 12),
}
"""The first of them that has the number of each architecture."""
