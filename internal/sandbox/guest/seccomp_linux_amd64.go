package guest

const (
	auditArch  = 0xc000003e
	sysSeccomp = 317
	sysRseq    = 334
)
