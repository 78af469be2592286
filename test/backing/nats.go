package backing

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"belfry/test/kit/programs"
)

// NATSServer is a NATS server with JetStream in a process of its own. It requires no user.
type NATSServer struct {
	URL     string
	Monitor string // URL of its monitoring
}

// natsConfig is what nats.conf says about what is stored.
const natsConfig = `listen: %q
http: %q
jetstream { store_dir: %q, sync_interval: always }
`

// NATS starts an empty NATS server. It ends with the test.
func NATS(t testing.TB) *NATSServer {
	t.Helper()
	program := must(t)(programs.NATS())
	folder, address, monitor := t.TempDir(), freeAddress(t), freeAddress(t)
	file := filepath.Join(folder, "nats.conf")
	text := fmt.Sprintf(natsConfig, address, monitor, filepath.Join(folder, "jetstream"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &NATSServer{URL: "nats://" + address, Monitor: "http://" + monitor}
	cmd := exec.Command(program, file)
	start(t, cmd, func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		if err := conn.Close(); err != nil {
			return err
		}
		return healthy(ctx, http.DefaultClient, s.Monitor+"/healthz")
	})
	return s
}
