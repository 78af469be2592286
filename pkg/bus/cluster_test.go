package bus_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/pkg/bus"
	"belfry/pkg/listener"
	"belfry/test/kit"
)

// cluster starts three servers by nats.conf with its section cluster in use.
func cluster(t *testing.T) (servers []*server.Server, url string) {
	t.Helper()
	passwords(t, "")
	t.Setenv("BELFRY_ROUTE_PASSWORD", password("route"))
	conf, err := os.ReadFile("../../nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(conf), "# cluster {\n")
	sample, after, found := strings.Cut(rest, "# }\n")
	if !found {
		t.Fatal("nats.conf has no sample of a cluster")
	}
	var addresses []string
	for range 3 {
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", kit.FreePort(t)))
	}
	sample = strings.ReplaceAll("\n"+sample, "\n# ", "\n")
	for i, name := range []string{"A", "B", "C"} {
		t.Setenv("BELFRY_ROUTE_"+name, "nats://route:"+password("route")+"@"+addresses[i])
	}
	var urls []string
	for i, address := range addresses {
		t.Setenv("BELFRY_NATS_NAME", fmt.Sprintf("nats-%d", i))
		t.Setenv("BELFRY_NATS_STORE", t.TempDir())
		text := before + "cluster {" + strings.Replace(sample, "0.0.0.0:6222", address, 1) + "}\n" + after
		opts, err := server.ProcessConfigFile(file(t, text))
		if err != nil {
			t.Fatal(err)
		}
		opts.Host, opts.Port, opts.NoSigs, opts.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
		opts.AuthTimeout = kit.Limit.Seconds() // a client may stall while it logs in
		s, err := server.NewServer(opts)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		servers = append(servers, s)
	}
	for _, s := range servers {
		if !s.ReadyForConnections(kit.Limit) {
			t.Fatal("a server is not ready")
		}
		urls = append(urls, s.ClientURL())
	}
	return servers, strings.Join(urls, ",")
}

// replicated is a cluster with the streams on all of its servers.
func replicated(t *testing.T) (servers []*server.Server, url string, admin *bus.Client) {
	t.Helper()
	servers, url = cluster(t)
	eventually(t, func() bool { return slices.ContainsFunc(servers, (*server.Server).JetStreamIsLeader) })
	admin = dial(t, url, "admin")
	eventually(t, func() bool {
		_, err := bus.SetupStreams(t.Context(), admin, bus.Limits{}, 3, false)
		return err == nil
	})
	eventually(t, func() bool {
		s, err := admin.JetStream().Stream(t.Context(), bus.StreamEvents)
		return err == nil && s.CachedInfo().Config.Replicas == 3 && len(s.CachedInfo().Cluster.Replicas) == 2
	})
	return servers, url, admin
}

// A leader without followers has what it was sent and stored nothing. Sent again, a message is a duplicate to it:
// in a batch it would be skipped, and the batch acknowledged, although nothing of it may ever be stored.
func TestNothingCountsAsPublishedThatALeaderAloneHas(t *testing.T) {
	servers, url, admin := replicated(t)
	front := as(t, url, "front", nil)
	known, alone := events("known", 1, 10), events("alone", 2, 10)
	eventually(t, func() bool { return front.Publish(t.Context(), known) == nil })
	s, err := admin.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	leader := servers[slices.IndexFunc(servers,
		func(x *server.Server) bool { return x.Name() == s.CachedInfo().Cluster.Leader })]
	lonely := as(t, leader.ClientURL(), "front", nil)
	if !lonely.BatchesOff() || s.CachedInfo().Config.AllowBatchPublish {
		t.Error("a stream with replicas takes batches")
	}
	if err := lonely.Publish(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	for _, x := range servers {
		if x != leader {
			x.Shutdown()
			x.WaitForShutdown()
		}
	}
	for _, list := range [][]bus.Event{alone, {known[0], alone[0], alone[1]}, {known[0], alone[1]}} {
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := lonely.Publish(brief, list); err == nil {
			t.Errorf("%d events were acknowledged", len(list))
		}
		cancel()
	}
}

func TestClusterOfThreeSurvivesTheLossOfOneServer(t *testing.T) {
	servers, url, admin := replicated(t)
	for what, replicas := range map[string]int{"configured": 3, "left as they are": 0} {
		if found, err := bus.SetupStreams(t.Context(), admin, bus.Limits{}, replicas, true); err != nil ||
			found[0].NeedsSetup() {
			t.Errorf("replicas that are %s: %v, %v", what, found, err)
		}
	}
	if found, err := bus.SetupStreams(t.Context(), admin, bus.Limits{}, 1, true); err != nil ||
		!strings.Contains(found[0].Detail, "replicas 3 instead of 1") {
		t.Errorf("%v, %v", found, err)
	}
	stream, err := admin.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	older := stream.CachedInfo().Config // as belfry created it before
	older.AllowBatchPublish = true
	if _, err := admin.JetStream().UpdateStream(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	if found, err := bus.SetupStreams(t.Context(), admin, bus.Limits{}, 3, false); err != nil ||
		found[0].State != bus.Updated {
		t.Errorf("a stream with replicas that takes batches: %v, %v", found, err)
	}
	front := as(t, url, "front", nil)
	listenThroughEach(t, admin, front, servers)
	for i, s := range append([]*server.Server{nil}, servers[0]) {
		if s != nil {
			s.Shutdown()
		}
		eventually(t, func() bool { return front.Publish(t.Context(), events(fmt.Sprint("e", i), 10, 10)) == nil })
	}
	eventually(t, func() bool {
		s, err := admin.JetStream().Stream(t.Context(), bus.StreamEvents)
		return err == nil && s.CachedInfo().State.Msgs == 320
	})
}

// listenThroughEach lets a listener, which has an account of its own, handle events
// through each server: through two of them the consumer is on another server.
func listenThroughEach(t *testing.T, admin *bus.Client, front *bus.Bus, servers []*server.Server) {
	t.Helper()
	for i, s := range servers {
		eventually(t, func() bool {
			_, err := listener.Setup(t.Context(), admin, listenerSpec("listener"), false)
			return err == nil
		})
		eventually(t, func() bool { return front.Publish(t.Context(), readable(fmt.Sprint("through", i), 100)) == nil })
		if n := handle(t, as(t, s.ClientURL(), "listener", nil), listenerSpec("listener"), 100); n != 100 {
			t.Errorf("through server %d the listener handles %d events, want 100", i, n)
		}
	}
}
