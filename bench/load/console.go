package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"belfry/test/backing"
)

const (
	consoleGoal     = 100 * time.Millisecond
	consoleRequests = 200 // of each view
	consoleBudget   = 10 * time.Second
)

// consoleSize is how much there is when the views are measured.
type consoleSize struct {
	objects  int // of one store
	updates  int // of one of them
	children int // of one parent
	users    int
	mails    int // to users
	letters  int
	conns    int
	pause    time.Duration // between two reads of the metrics
}

// consoleViews measures the views of the console, for an admin who is logged in: first over files, then, with less,
// over MongoDB or its stand-in.
func (b *bench) consoleViews(ctx context.Context, objects int) error {
	if objects == 0 {
		return nil
	}
	err := b.consoleOf(ctx, "file",
		configuration, consoleSize{objects: objects, updates: 2000, children: 10_000, users: objects / 10, mails: 2000,
			letters: 10_000, conns: connections})
	if err != nil {
		return err
	}
	return backing.WithHost(ctx, func(h *backing.Host) error {
		d := mongoDatabase(h)
		size := consoleSize{objects: 1000, updates: 50, children: 100, users: 100, mails: 50, letters: 200, conns: 1,
			pause: metricsPause}
		return b.consoleOf(ctx, d.name, on(fmt.Sprintf(d.backend, d.url)), size)
	})
}

func (b *bench) consoleOf(ctx context.Context, name, configuration string, size consoleSize) (err error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	listed := strings.Replace(configuration, "Items: {expose: {}}",
		`Items: {expose: {list: true}, indexes: ["year, n", title]}`, 1)
	s, err := b.serveWith(ctx, withBus(listed, address))
	if err != nil {
		return err
	}
	s.pause = size.pause
	defer func() { err = errors.Join(err, s.stop()) }()
	began := time.Now()
	f, err := b.fillConsole(ctx, s, address, size)
	if err != nil {
		return err
	}
	fmt.Printf("console on %s: %d objects in a store, %d updates of one, %d children of one parent, %d users, %d "+
		"mails, %d dead letters, %d events in the log, filled in %s\n",
		name, size.objects, size.updates, size.children, size.users, min(size.mails, size.users), size.letters,
		f.logged, short(time.Since(began)))
	c, err := dial(s.base)
	if err != nil {
		return err
	}
	defer c.close()
	c.header = f.admin
	return b.profiled(ctx, s, "console-"+name, profileSeconds, func() error {
		for _, v := range f.views(c) {
			if _, err := s.measureView(c, v.measured()); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
		return nil
	})
}

// consoleView is a page of the console, or a part of one that htmx asks for.
type consoleView struct {
	name, path string
	status     int // of the reply
}

// measured is the view as one that is measured.
func (v consoleView) measured() measuredView {
	return measuredView{v.name, func(c *client) error {
		if v.path == "" {
			return errors.New("the page of the view was not found")
		}
		return expect(c, v.status, "GET", v.path, nil)
	}}
}

// measuredView is what is requested as a view.
type measuredView struct {
	name string
	send func(c *client) error
}

// measureView requests a view as often as there is time for, one request after the other, and reports whether it
// reaches the goal. The time is that from the request to the end of the reply: it includes the way to the server and
// back.
func (s *server) measureView(c *client, v measuredView) (reached bool, err error) {
	var took []time.Duration
	before := s.cpu()
	for began := time.Now(); len(took) < consoleRequests && (len(took) == 0 || time.Since(began) < consoleBudget); {
		sent := time.Now()
		if err := v.send(c); err != nil {
			return false, err
		}
		took = append(took, time.Since(sent))
	}
	cpu := s.cpu() - before
	slices.Sort(took)
	p99 := percentile(took, 0.99)
	fmt.Printf("  %-40s median %9s  p99 %9s  max %9s  processor %7.2f ms  %7d bytes  %3d requests  (goal %s): %s\n",
		v.name, short(percentile(took, 0.5)), short(p99), short(took[len(took)-1]), micros(cpu, len(took))/1000,
		len(c.body), len(took), short(consoleGoal), verdict(p99 < consoleGoal))
	return p99 < consoleGoal, nil
}

// views lists the views. Some lead to others.
func (f *filled) views(c *client) []consoleView {
	const objects = "/console/objects/"
	item := objects + "Items/object/" + f.updated
	parent := objects + "Parents/object/" + parentOfAll
	list := objects + "Items?filter=year+%3D%3D+1887&sort=-n"
	return []consoleView{
		{"no view: /healthz, to compare", "/healthz", 200},
		{"stores with counts", "/console/objects", 200},
		{"a list", objects + "Items", 200},
		{"a list, its second page", link(c, objects+"Items", "cursor="), 200},
		{"a list by filter and sort", list, 200},
		{"the same, its second page", link(c, list, "cursor="), 200},
		{"a list by an equal title", objects + "Items?filter=title+%3D%3D+%22The+bells+of+the+old+town%22", 200},
		{"an object", item, 200},
		{"an object with 10,000 copies", parent, 200},
		{"a new object", objects + "Items/new", 200},
		{"the history of an object", item + "/history", 200},
		{"older events of it", link(c, item+"/history", "before="), 200},
		{"a history without events", objects + "Items/object/nothing/history", 200},
		{"before a deletion", item + "/delete", 200},
		{"before one with a cascade", parent + "/delete", 200},
		{"map", "/console/map", 200},
		{"live", "/console/live", 200},
		{"workers", "/console/workers", 200},
		{"a worker", "/console/workers/mapping", 200},
		{"dead letters", "/console/letters", 200},
		{"dead letters, the second page", link(c, "/console/letters", "after="), 200},
		{"dead letters of a listener", "/console/letters?listener=others", 200},
		{"a dead letter", "/console/letters/1", 200},
		{"verify", "/console/verify", 200},
		{"schemas", "/console/schemas", 200},
		{"settings", "/console/settings", 200},
		{"logs", "/console/logs", 200},
		{"users", "/console/users", 200},
		{"users, the second page", link(c, "/console/users", "after="), 200},
		{"users, looking for an address", "/console/users?q=" + f.address, 303},
		{"users, looking for nobody", "/console/users?q=nobody%40example.com", 200},
		{"a user", "/console/users/" + f.user, 200},
		{"a new user", "/console/users/new", 200},
		{"mails", "/console/mails", 200},
		{"a mail", link(c, "/console/mails", "/console/mails/"), 200},
		{"system", "/console/system", 200},
		{"system, its charts", "/console/system/charts", 200},
		{"api", "/console/api", 200},
		{"api, the document", "/console/api/openapi.json", 200},
	}
}

// link returns the first link of a page that contains a text; "" for none.
func link(c *client, path, text string) string {
	if status, err := c.do("GET", path, nil); err != nil || status != 200 {
		return ""
	}
	for _, part := range strings.Split(string(c.body), `href="`)[1:] {
		if href, _, _ := strings.Cut(part, `"`); strings.Contains(href, text) {
			return html.UnescapeString(href)
		}
	}
	return ""
}

// command runs a command of belfry beside a server.
func (b *bench) command(ctx context.Context, s *server, args ...string) error {
	args = append(args, "--config", filepath.Join(filepath.Dir(s.data), "belfry.yaml"))
	out, err := exec.CommandContext(ctx, b.belfry, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("belfry %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
