package process

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"belfry/test/kit"
)

// busFolder, when set in the environment, turns a test binary into a NATS
// server on that folder, so that an external bus can be killed.
const (
	busFolder = "BELFRY_TEST_BUS_FOLDER"
	busPort   = "BELFRY_TEST_BUS_PORT"
)

// Bus is a NATS server in a process of its own.
type Bus struct {
	URL string
	cmd *exec.Cmd
}

// StartBus starts a NATS server with JetStream on a folder and a port, and
// waits until it takes connections. The package's TestMain must be Main.
func StartBus(t testing.TB, folder string, port int) *Bus {
	t.Helper()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	b := &Bus{URL: "nats://" + address, cmd: exec.Command(os.Args[0])}
	b.cmd.Env = append(os.Environ(), busFolder+"="+folder, busPort+"="+strconv.Itoa(port))
	if err := kit.Start(b.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Kill)
	Eventually(t, time.Minute, func() error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	return b
}

// Kill ends the server as a crash would.
func (b *Bus) Kill() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// serveBus runs the test binary as a NATS server until it or its parent is killed.
func serveBus(folder string) error {
	port, err := strconv.Atoi(os.Getenv(busPort))
	if err != nil {
		return err
	}
	s, err := natsserver.NewServer(&natsserver.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: folder, SyncAlways: true, NoSigs: true,
	})
	if err != nil {
		return err
	}
	go s.Start()
	if !s.ReadyForConnections(kit.Limit) {
		return fmt.Errorf("the NATS server is not ready on port %d", port)
	}
	s.WaitForShutdown()
	return nil
}
