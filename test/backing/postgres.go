package backing

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"belfry/test/kit/programs"
)

// Postgres is a PostgreSQL for servers that keep their data in it. A test may stop it and start it again.
type Postgres struct {
	URL     string // of a database, whose owner needs no password
	Address string // host and port of it

	folder  string // of the programs, which is readable for the user of the process
	data    string
	process *process
}

// postgresUser runs PostgreSQL where the tests are run by root: it refuses to be root's. The user is nobody.
const postgresUser = 65534

// StartPostgres starts an empty PostgreSQL. It keeps nothing after a power failure.
func StartPostgres(t testing.TB) *Postgres {
	t.Helper()
	address := freeAddress(t)
	// The folders of a test can't be entered by other users.
	folder, err := os.MkdirTemp("", "postgres") //nolint:usetesting // see above
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(folder) })
		err = errors.Join(
			os.CopyFS(filepath.Join(folder, "programs"), os.DirFS(must(t)(programs.Postgres()))),
			os.Chmod(folder, 0o755), os.Mkdir(filepath.Join(folder, "data"), 0o700), //nolint:gosec // for the other user
		)
	}
	if err == nil && os.Getuid() == 0 {
		err = os.Chown(filepath.Join(folder, "data"), postgresUser, postgresUser)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &Postgres{
		URL: "postgres://belfry@" + address + "/postgres", Address: address,
		folder: filepath.Join(folder, "programs"), data: filepath.Join(folder, "data"),
	}
	initialize := p.command("initdb", "--pgdata", p.data, "--username", "belfry", "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	if text, err := initialize.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", initialize, err, text)
	}
	p.Restart(t)
	return p
}

// command returns a command that runs one of PostgreSQL's programs.
func (p *Postgres) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.folder, "bin", program), args...)
	cmd.Dir = p.folder
	cmd.Env = []string{"LD_LIBRARY_PATH=" + filepath.Join(p.folder, "lib"), "TZ=UTC", "LC_ALL=C"}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: postgresUser, Gid: postgresUser}}
	}
	return cmd
}

// Stop ends the server's connections, as an administrator's restart does, and the server.
func (p *Postgres) Stop() {
	p.process.killed = true
	_ = p.process.cmd.Process.Signal(syscall.SIGINT)
	<-p.process.done
}

// Restart starts the server again at the same address, on the same data.
func (p *Postgres) Restart(t testing.TB) {
	t.Helper()
	host, port, err := net.SplitHostPort(p.Address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := p.command("postgres", "-D", p.data, "-h", host, "-p", port, "-k", "",
		"-c", "fsync=off", "-c", "max_connections=200", "-c", "shared_buffers=16MB", "-c", "deadlock_timeout=100ms",
		"-c", "dynamic_shared_memory_type=mmap")
	p.process = start(t, cmd, func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.Address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
