package backends

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tidwall/gjson"

	"belfry/pkg/app"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/process"
)

// TestProcessesShareTargets: two processes on one bus and one backend have each other write targets. When one of them
// stops while objects are created, no entry is missing.
func TestProcessesShareTargets(t *testing.T) {
	t.Parallel()
	const parents, children = 8, 80
	bus := natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()
	text := fmt.Sprintf(`
listen: 127.0.0.1:0
metrics: {token: the-metrics-of-a-test}
bus: {url: %q}
backends: {shared: %s}
stores:
  Parents: {backend: shared, uuid: client, expose: {}}
  Children: {backend: shared, uuid: client, expose: {}, map: {Parents: {key: parent, target: children, fields: title}}}
`, bus, dynamo(servers.dynoxide()))
	start := func() (*app.App, *process.Server) {
		a := startInProcess(t, text)
		return a, &process.Server{URL: "http://" + a.HTTPAddress()}
	}
	_, first := start()
	second, other := start()
	for _, s := range []*process.Server{first, other} {
		kit.WaitFor(t, "they share targets", func() bool { return metric(t, s, "belfry_mapping_workers") == "2" })
	}
	for i := range parents {
		must(t, first, 201, "POST", "/parents", fmt.Sprintf(`{"uuid":"p%d"}`, i))
	}
	created := 0
	create := func() { // at once, so that the workers conflict
		var running sync.WaitGroup
		for range parents {
			from := created
			running.Go(func() {
				for i := from; i < from+children/parents; i++ {
					must(t, first, 201, "POST", "/children",
						fmt.Sprintf(`{"uuid":"c%d","parent":"p%d","title":"T"}`, i, i%parents))
				}
			})
			created += children / parents
		}
		running.Wait()
	}
	complete := func() {
		for i := range parents {
			entries := created / parents
			process.Eventually(t, patience, func() error {
				r := must(t, first, 200, "GET", fmt.Sprintf("/parents/p%d", i), "")
				if n := gjson.GetBytes(r.body, "children.#").Int(); n != int64(entries) {
					return fmt.Errorf("parent %d has %d entries, want %d", i, n, entries)
				}
				return nil
			})
		}
	}
	process.Eventually(t, patience, func() error {
		create()
		for name, s := range map[string]*process.Server{"the first": first, "the second": other} {
			if metric(t, s, "belfry_mapping_forwarded_total") == "0" ||
				metric(t, s, "belfry_mapping_served_total") == "0" {
				return fmt.Errorf("%s has forwarded %s rounds and run %s for the other one", name,
					metric(t, s, "belfry_mapping_forwarded_total"), metric(t, s, "belfry_mapping_served_total"))
			}
		}
		return nil
	})
	complete()
	var stopping sync.WaitGroup
	stopping.Go(func() {
		if err := second.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	create()
	stopping.Wait()
	complete()
	kit.WaitFor(t, "the other one has left", func() bool { return metric(t, first, "belfry_mapping_workers") == "1" })
}

// metric is the value of a metric without labels.
func metric(t *testing.T, s *process.Server, name string) string {
	t.Helper()
	r, err := request(s.URL, "GET", "/metrics", "", "Authorization", "Bearer the-metrics-of-a-test")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut("\n"+string(r.body), "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}
