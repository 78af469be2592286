package errs

import (
	"fmt"
	"runtime/debug"
)

// Panic is a panic that ended one request and nothing else. It is Internal, and
// its stack is for the log.
type Panic struct {
	Value any
	Stack []byte
}

// Panicked makes an error of the value of recover, with the present stack.
func Panicked(value any) *Panic { return &Panic{Value: value, Stack: debug.Stack()} }

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }
