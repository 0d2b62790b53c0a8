package guest

const (
	auditArch  = 0xc00000b7
	sysSeccomp = 277
	sysRseq    = 293
)
