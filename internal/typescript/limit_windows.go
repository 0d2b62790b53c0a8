package typescript

func limit() {}
