package backing

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Dynamo is a server that speaks DynamoDB's protocol. It takes any
// credentials, and any region.
type Dynamo struct {
	URL string

	t       testing.TB
	command func() *exec.Cmd
	running *process
}

// Dynalite starts an empty dynalite. It has no transactions, and keeps its data in
// memory.
func Dynalite(t testing.TB) *Dynamo {
	t.Helper()
	program := filepath.Join(NPM(t, "test/servers/dynamo"), "dynalite.js")
	host, port := splitAddress(t)
	return startDynamo(t, host, port, func() *exec.Cmd {
		return exec.Command("node", program, host, port)
	})
}

// Dynoxide starts an empty dynoxide. It keeps its data in a file, which survives
// Kill and Restart.
func Dynoxide(t testing.TB) *Dynamo {
	t.Helper()
	program := filepath.Join(NPM(t, "test/servers/dynamo"), "node_modules", "@dynoxide", "linux-x64", "dynoxide")
	host, port := splitAddress(t)
	data := filepath.Join(t.TempDir(), "dynamo.db")
	return startDynamo(t, host, port, func() *exec.Cmd {
		return exec.Command(program, "serve", "--host", host, "--port", port, "--db-path", data)
	})
}

func splitAddress(t testing.TB) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

func startDynamo(t testing.TB, host, port string, command func() *exec.Cmd) *Dynamo {
	t.Helper()
	d := &Dynamo{URL: "http://" + net.JoinHostPort(host, port), t: t, command: command}
	d.Restart()
	return d
}

// Kill ends the server as a crash would.
func (d *Dynamo) Kill() { d.running.kill() }

// Restart starts the server again at the same address, on the same data.
func (d *Dynamo) Restart() {
	d.t.Helper()
	d.running = start(d.t, d.command(), d.answers)
}

// answers sends a read request; any reply will do, as nothing is signed.
func (d *Dynamo) answers(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return reply.Body.Close()
}
