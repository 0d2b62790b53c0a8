package guest

import "syscall"

const mapNoReserve = syscall.MAP_NORESERVE
