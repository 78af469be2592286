package world

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"belfry/test/backing"
)

// bus is a NATS server on a machine of its own.
type bus struct {
	*unit
	address string
	machine *machine
	routes  []*backing.Proxy // every connection to other servers goes through one of them
}

// busConfig is that of nats.conf where it matters to a fault; the others are allowed to everyone.
const busConfig = `server_name: %s
listen: %s
ping_interval: 5s
ping_max: 2
write_deadline: 10s
jetstream { store_dir: %q, sync_interval: always }
`

// In a cluster each server connects to the others through proxies, and all connections are known: what
// the servers advertise to each other is an address that nobody listens on, and clients receive
// none. A server expects as many servers as it has routes, so one of them is to itself, which it
// ignores: with fewer, two servers would begin without the third one.
const clusterConfig = `cluster {
  name: belfry
  listen: %s
  advertise: 127.0.0.1:1
  no_advertise: true
  routes: [%s]
}
`

// addBuses adds so many NATS servers, which form a cluster if there are several.
func (w *World) addBuses(count int) {
	w.t.Helper()
	listen, cluster := make([]string, count), make([]string, count)
	for i := range count {
		listen[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(w.freePort()))
		cluster[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(w.freePort()))
		name := fmt.Sprintf("bus-%d", i+1)
		b := &bus{unit: &unit{name: name}, address: listen[i], machine: w.addMachine(name)}
		b.machine.units = append(b.machine.units, b.unit)
		w.buses = append(w.buses, b)
	}
	for i, b := range w.buses {
		config := fmt.Sprintf(busConfig, b.name, b.address, filepath.Join(b.machine.folder, "jetstream"))
		if count > 1 {
			routes := []string{"nats://" + cluster[i]}
			for j, other := range w.buses {
				if j == i {
					continue
				}
				p := w.proxies.To(cluster[j])
				b.routes = append(b.routes, p)
				other.routes = append(other.routes, p)
				routes = append(routes, "nats://"+p.Address)
			}
			config += fmt.Sprintf(clusterConfig, cluster[i], strings.Join(routes, ", "))
		}
		b.config = w.write(b.name+".conf", strings.TrimSpace(config)+"\n")
		b.command = func() *exec.Cmd {
			cmd := exec.Command(w.programs.nats, b.config)
			cmd.Env = w.env
			return cmd
		}
	}
}
