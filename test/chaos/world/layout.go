package world

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"belfry/test/backing"
)

// layOut decides on the processes of a world, their addresses, disks and configuration.
func (w *World) layOut(served string) {
	w.t.Helper()
	switch w.kind {
	case Files:
		w.single(served, "")
	case FilesAndBus:
		w.addBuses(1)
		w.single(served, w.buses[0].address)
	case Mongo:
		server := backing.StartMongo(w.t)
		w.backend = restartable{server.Kill, func() { server.Restart(w.t) }}
		w.addBuses(1)
		w.several(served, server.Address, 2,
			func(address string) string { return "{type: mongodb, url: 'mongodb://" + address + "/'}" })
	case Dynamo, Cluster:
		buses, each := 1, 2
		if w.kind == Cluster {
			buses = 3
			if w.clock != nil {
				each = 4 // each process takes a second of computing time
			}
		}
		server := backing.Dynoxide(w.t)
		w.backend = server
		w.addBuses(buses)
		w.several(served, strings.TrimPrefix(server.URL, "http://"), each, func(address string) string {
			return "{type: dynamodb, region: eu-central-1, endpoint: 'http://" + address + "'}"
		})
	default:
		w.t.Fatalf("no kind %q", w.kind)
	}
	w.deployment.Env = w.env
}

// restartable makes a restarter of two functions.
type restartable struct{ kill, restart func() }

func (r restartable) Kill()    { r.kill() }
func (r restartable) Restart() { r.restart() }

// single is one process on files. Without the address of a bus it has the embedded one.
func (w *World) single(served, external string) {
	w.t.Helper()
	m := w.addMachine("belfry")
	served = strings.ReplaceAll(served, Storage, "type: FileStorage")
	port := w.freePort()
	bus := fmt.Sprintf("{listen: '127.0.0.1:%d'}", port)
	w.deployment.Bus = fmt.Sprintf("nats://127.0.0.1:%d", port)
	u := w.newBelfry("belfry", "")
	u.data = filepath.Join(m.folder, "data")
	text := func(bus string) string {
		return fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\nbus: %s\n%s", u.data, bus, served)
	}
	if external != "" {
		p := w.proxies.To(external)
		w.toBus[u] = []*backing.Proxy{p}
		w.deployment.Bus = "nats://" + external
		w.deployment.Config = w.write("commands.yaml", text("{url: '"+w.deployment.Bus+"'}"))
		u.original = text("{url: 'nats://" + p.Address + "'}")
	} else {
		u.original = text(bus)
		w.deployment.Config = w.write("commands.yaml", u.original)
	}
	u.config = w.write("belfry.yaml", u.original)
	w.fronts, m.units = []*unit{u}, append(m.units, u)
}

// several is so many fronts and workers whose stores are in a server at an address. Each process reaches
// the server and the buses through proxies of its own.
func (w *World) several(served, server string, each int, backend func(address string) string) {
	w.t.Helper()
	if strings.Contains(served, Storage) {
		s3 := backing.S3(w.t)
		w.env = append(w.env, "AWS_CA_BUNDLE="+s3.CAFile)
		served = strings.ReplaceAll(served, Storage,
			fmt.Sprintf("type: S3Storage, bucket: %s, region: %s, endpoint: '%s'", s3.Bucket, s3.Region, s3.Endpoint))
	}
	text := func(name, server string, buses []string) string {
		replicas := ""
		if len(buses) > 1 {
			replicas = fmt.Sprintf(", replicas: %d", len(buses))
		}
		return fmt.Sprintf("data: ./%s\nlisten: 127.0.0.1:0\nbaseURL: http://127.0.0.1\nbackends: {default: "+
			"%s}\nbus: {url: [%s]%s}\n%s",
			name, backend(server), strings.Join(buses, ", "), replicas, served)
	}
	var direct []string
	for _, b := range w.buses {
		direct = append(direct, "nats://"+b.address)
	}
	w.deployment.Bus = strings.Join(direct, ",")
	w.deployment.Config = w.write("commands.yaml", text("commands", server, direct))
	add := func(name, roles string) *unit {
		u := w.newBelfry(name, roles)
		var buses []string
		for _, b := range w.buses {
			p := w.proxies.To(b.address)
			w.toBus[u] = append(w.toBus[u], p)
			buses = append(buses, "nats://"+p.Address)
		}
		p := w.proxies.To(server)
		w.toStores[u] = []*backing.Proxy{p}
		u.original, u.data = text(name, p.Address, buses), filepath.Join(w.folder, name)
		u.config = w.write(name+".yaml", u.original)
		return u
	}
	for i := range each {
		w.fronts = append(w.fronts, add(fmt.Sprintf("front-%d", i+1), "front"))
	}
	for i := range each {
		w.workers = append(w.workers, add(fmt.Sprintf("worker-%d", i+1), "mapping,cascade,mail,sweep"))
	}
}

// newBelfry returns a process of belfry, whose address stays the same.
func (w *World) newBelfry(name, roles string) *unit {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(w.freePort()))
	u := &unit{name: name, url: "http://" + address, program: w.programs.belfry}
	u.command = func() *exec.Cmd {
		args := []string{"serve", "--config", u.config, "--listen", address}
		if roles != "" {
			args = append(args, "--role", roles)
		}
		cmd := exec.Command(u.program, args...)
		cmd.Env = w.env
		return cmd
	}
	if roles == "" || roles == "front" {
		w.deployment.Fronts = append(w.deployment.Fronts, u.url)
	} else {
		w.deployment.Workers = append(w.deployment.Workers, u.url)
	}
	return u
}

// addMachine adds a machine. If its disk can't be made to fail, that is missing.
func (w *World) addMachine(name string) *machine {
	w.t.Helper()
	m, err := newMachine(w.t, w.folder, name)
	if err != nil {
		w.missing = append(w.missing, fmt.Sprintf("%s: a disk that fails, and power cuts: %v", name, err))
	}
	w.machines = append(w.machines, m)
	return m
}

// write writes a file beside the others of the world and returns its path.
func (w *World) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}
