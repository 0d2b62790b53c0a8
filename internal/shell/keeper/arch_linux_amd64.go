package keeper

const auditArch = 0xc000003e
