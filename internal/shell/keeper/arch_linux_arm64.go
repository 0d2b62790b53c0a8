package keeper

const auditArch = 0xc00000b7
