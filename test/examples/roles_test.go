package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/bus"
	"belfry/pkg/listener"
	"belfry/test/process"
)

// restricted is a belfry on the shipped nats.conf, with a listener in the account that
// `belfry bus account` prints: what it does beyond its permissions fails. environment
// is that of the listener's program.
func restricted(t *testing.T, name, config string, files ...string) (w *fixture, environment []string) {
	t.Helper()
	const password = "pw"
	for _, user := range []string{"FRONT", "WORKER", "ALL", "LISTENER", "CLIENT", "OBSERVER", "ADMIN", "SYSTEM",
		strings.ToUpper(strings.ReplaceAll(name, "-", "_"))} {
		t.Setenv("BELFRY_"+user+"_PASSWORD", password)
	}
	folder := t.TempDir()
	t.Setenv("BELFRY_NATS_NAME", "test")
	t.Setenv("BELFRY_NATS_STORE", filepath.Join(folder, "nats"))
	w = &fixture{t: t}
	shipped, err := os.ReadFile("../../nats.conf")
	w.check(err)
	conf := string(shipped)
	for command, place := range map[string]string{"role": "\naccounts {", "account": "  SYS: {"} {
		printed, said, code, err := process.Run(process.Commands(t), "bus", command, name, "--request",
			"store.Users.update")
		if err != nil || code != 0 {
			t.Fatalf("bus %s: %v, %d: %s", command, err, code, said)
		}
		conf = strings.Replace(conf, place, "\n"+printed+place, 1)
	}
	w.serve(folder, "bus: {config: nats.conf, listen: 127.0.0.1:0, user: belfry, password: pw}\n"+config,
		bus.Auth{User: "admin", Password: password}, append(files, "nats.conf", conf, "password", password)...)
	w.admin = []string{"--user", "admin", "--password-file", filepath.Join(folder, "password")}
	w.run("bus", "setup", "--config", filepath.Join(folder, "belfry.yaml"), "--listener", name, "--filter",
		"events.*.Register.*.*", "--ack-wait", "5s")
	return w, []string{listener.EnvUser + "=" + name, listener.EnvPassword + "=" + password}
}
