package e2e

import (
	"strconv"
	"time"

	"github.com/pquerna/otp/totp"
	"github.com/rogpeppe/go-internal/testscript"
)

func totpCode(ts *testscript.TestScript, _ bool, args []string) {
	steps := 0
	if len(args) == 3 {
		var err error
		steps, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	code, err := totp.GenerateCode(args[1], time.Now().Add(time.Duration(steps)*30*time.Second))
	ts.Check(err)
	of(ts).golden.code(code)
	ts.Setenv(args[0], code)
}
