package app

import (
	"time"
)

// examineTimeout is for how long the serving process examines itself.
const examineTimeout = 10 * time.Second
