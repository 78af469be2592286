package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/tidwall/gjson"

	"belfry/pkg/bus"
	"belfry/test/kit"
	"belfry/test/mailbox"
	"belfry/test/process"
)

// goldenScripts are the scripts that have a golden log: those about accounts.
var goldenScripts = []string{"auth-*", "account-*", "console-second-factor"}

// updateGolden, in the environment, has golden logs written instead of compared.
const updateGolden = "GOLDEN_UPDATE"

// golden is the log of a script: how belfry replied, which mails and events it sent, and what it has stored in the end.
// It is compared byte for byte with a file, so that a change of the code that is to change nothing else is seen to do
// so. A nil golden logs nothing.
//
// Not logged, because it differs from run to run:
//   - what golden_masks_test.go masks
//   - requests that a script repeats, but the last
//   - how often an event came, where requests or mails are repeated (golden.repeats), and how many tokens a mail had
//     there: each attempt makes one (golden.records)
//   - header Date; header Content-Length of a body that is masked (unlogged, exchange)
//   - metrics but those about passwords; the order of a user's activity, which varies for events of one request
//     (readable)
//   - events of mappings, and the array that they keep of a user's idents in other events (golden.events): how many of
//     its writes come together depends on the speed of a worker. Replies and records have it, since golden waits for
//     the worker, but not its order: that of idents which one request writes varies (sortIdents).
//   - how often an announcement came (golden.events): a write that meets another is announced again
type golden struct {
	s        *session
	name     string // of the script
	entries  []entry
	masks    masks
	read     map[string]int // mails that are entries, by address
	mailAway bool           // mails do not arrive now
	repeats  bool           // requests that cause events are repeated, or mails are sent again, as often as it takes

	conn      *nats.Conn     // while belfry runs
	closed    chan struct{}  // once conn has received its last message
	announced chan *nats.Msg // has capacity for all of a script
}

// entry is what a script did, with belfry's reply.
type entry struct{ head, body string }

// newGolden returns the log of a script; nil if it has none.
func newGolden(s *session, name string) (*golden, error) {
	if !slices.ContainsFunc(goldenScripts,
		func(pattern string) bool { is, _ := path.Match(pattern, name); return is }) {
		return nil, nil
	}
	script, err := os.ReadFile(filepath.Join("testdata", name+".txtar"))
	return &golden{
		s: s, name: name, masks: newMasks(s.folder, string(script)), read: map[string]int{},
		announced: make(chan *nats.Msg, 1<<16),
		repeats:   strings.Contains(string(script), "\neventually-l"), // eventually-login and eventually-limited
	}, err
}

func (g *golden) add(body, format string, args ...any) {
	if g != nil {
		g.entries = append(g.entries, entry{fmt.Sprintf(format, args...), sortIdents(body)})
	}
}

// last returns a check that is repeated, of which the last time is logged.
func (g *golden) last(check func() error) func() error {
	if g == nil {
		return check
	}
	begin := len(g.entries)
	return func() error {
		g.entries = g.entries[:begin]
		return check()
	}
}

// started follows a belfry until it ends.
func (g *golden) started(file string, server *process.Server) (err error) {
	if g == nil {
		return nil
	}
	g.add("", "serve %s", filepath.Base(file))
	g.masks.ports(server.URL, server.Bus, server.Metrics)
	closed := make(chan struct{})
	g.conn, err = nats.Connect(server.Bus, nats.Timeout(kit.Limit), nats.NoReconnect(),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err != nil {
		return fmt.Errorf("a script with a golden log needs a port of the bus: %w", err)
	}
	g.closed = closed
	for _, name := range announcements {
		if _, err := g.conn.ChanSubscribe(string(name), g.announced); err != nil {
			return err
		}
	}
	return g.conn.FlushTimeout(kit.Limit)
}

// ended returns once everything that an ended belfry has published is received.
func (g *golden) ended() {
	if g == nil || g.conn == nil {
		return
	}
	g.add("", "belfry ended")
	<-g.closed
	g.conn = nil
}

// settle waits until belfry has done all that the requests so far cause, so that the next reply does not depend on the
// speed of workers.
func (g *golden) settle() error {
	if g == nil || g.conn == nil {
		return nil
	}
	return kit.Await(postage, func() error {
		// What goroutines and listeners have written before this is published when belfry is idle.
		if err := asleep(g.s.server.PID()); err != nil {
			return err
		}
		before, err := g.logged(true)
		if err == nil {
			err = g.s.server.Idle()
		}
		if err != nil {
			return err
		}
		after, err := g.logged(false)
		if err == nil && after != before {
			err = errors.New("events were published meanwhile")
		}
		return err
	})
}

// asleep reports a thread of a process that does something, on Linux: work in the background of a request that is over
// has no metric.
func asleep(pid int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		stat, _ := os.ReadFile(thread) // one that has ended has none
		if i := bytes.LastIndex(stat, []byte(") ")); i >= 0 && (stat[i+2] == 'R' || stat[i+2] == 'D') {
			return errors.New("belfry works")
		}
	}
	return err
}

// logged returns the end of the log. If all of it is to be handled, it reports a listener that has not.
func (g *golden) logged(handled bool) (uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
	defer cancel()
	js, err := jetstream.New(g.conn, jetstream.WithDefaultTimeout(kit.Limit))
	if err != nil {
		return 0, err
	}
	stream, err := js.Stream(ctx, bus.StreamEvents)
	if err != nil {
		return 0, err
	}
	if handled {
		consumers := stream.ListConsumers(ctx)
		for c := range consumers.Info() {
			waits := c.Name == "mail" && g.mailAway
			if n := c.NumPending + uint64(c.NumAckPending); n > 0 && c.Config.Durable != "" && !waits {
				err = fmt.Errorf("listener %s has %d events to handle", c.Name, n)
			}
		}
		err = errors.Join(err, consumers.Err())
	}
	return stream.CachedInfo().State.LastSeq, err
}

// unlogged are headers that vary.
var unlogged = []string{"Date"}

// exchange logs a request and its reply.
func (g *golden) exchange(method, path string, sent http.Header, body string) {
	if g == nil {
		return
	}
	var b strings.Builder
	b.WriteString(method + " " + path)
	if who := g.s.browsers.current; who != "" {
		b.WriteString(" as " + who)
	}
	writeHeader(&b, "\n> ", sent)
	if body != "" {
		b.WriteString("\n> " + body)
	}
	r := g.s.last
	text, header := readable(r), maps.Clone(r.header)
	for _, name := range unlogged {
		header.Del(name)
	}
	if g.masks.mask(text, false) != text {
		header.Del("Content-Length")
	}
	fmt.Fprintf(&b, "\n< %d", r.status)
	writeHeader(&b, "\n< ", header)
	g.add(text, "%s", b.String())
}

func writeHeader(b *strings.Builder, prefix string, header http.Header) {
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			b.WriteString(prefix + name + ": " + value)
		}
	}
}

// readable returns the body of a reply: of an archive its entries, of the page of metrics those about passwords, and
// the activity of a user by time.
func readable(r response) string {
	text := string(r.body)
	if strings.HasPrefix(text, `{"events":[`) {
		activity := gjson.Get(text, "events")
		events := activity.Array()
		slices.SortFunc(events,
			func(a, b gjson.Result) int { return strings.Compare(b.Get("time").Str, a.Get("time").Str) })
		var raw []string
		for _, e := range events {
			raw = append(raw, e.Raw)
		}
		return strings.Replace(text, activity.Raw, "["+strings.Join(raw, ",")+"]", 1)
	}
	if strings.HasPrefix(text, "# HELP") {
		lines := slices.Collect(strings.Lines(text))
		return strings.Join(slices.DeleteFunc(lines,
			func(line string) bool { return !strings.HasPrefix(line, "belfry_password") }), "")
	}
	archive, err := zip.NewReader(bytes.NewReader(r.body), int64(len(r.body)))
	if err != nil {
		return text
	}
	text = ""
	for _, f := range archive.File {
		content, err := fs.ReadFile(archive, f.Name)
		text += fmt.Sprintf("%s: %v\n%s\n", f.Name, err, content)
	}
	return text
}

// ran logs a command.
func (g *golden) ran(args []string, out, errOut string, exit int) {
	if errOut != "" {
		out += "[stderr]\n" + errOut
	}
	g.add(out, "belfry %s\n< exit %d", strings.Join(args, " "), exit)
}

// mail logs a mail.
func (g *golden) mail(m mailbox.Mail) {
	if g == nil {
		return
	}
	g.masks.codesOf(m.Subject, m.Text)
	g.read[m.To]++
	g.add(textOf(m), "mail")
}

func textOf(m mailbox.Mail) string {
	return fmt.Sprintf("From: %s\nTo: %s\nSubject: %s\n%s\n%s", m.From, m.To, m.Subject, m.Text, m.HTML)
}

// code has a code masked.
func (g *golden) code(code string) {
	if g != nil {
		g.masks.codesOf(code)
	}
}

// port has a port masked.
func (g *golden) port(port int) {
	if g != nil {
		g.masks.ports(fmt.Sprintf("smtp://localhost:%d", port))
	}
}

// away says that mails do not arrive, and are tried again, or that they do now.
func (g *golden) away(is bool) {
	if g != nil {
		g.mailAway, g.repeats = is, g.repeats || is
	}
}

// finish stops belfry at the end of a script that has not failed, and compares the log.
func (g *golden) finish() error {
	if g.s.test.Failed() {
		return nil
	}
	if g.s.server != nil {
		if err := g.s.end((*process.Server).Stop); err != nil {
			return err
		}
	}
	got, err := g.text()
	if err != nil {
		return err
	}
	file := filepath.Join("testdata", "golden", g.name+".log")
	if os.Getenv(updateGolden) != "" {
		return os.WriteFile(file, got, 0o644)
	}
	want, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if differs := diff.Diff(file, want, "now", got); differs != nil {
		return fmt.Errorf("what belfry does is not what %s says. If it should do so, write the file with %s=1:\n%s",
			file, updateGolden, differs)
	}
	return nil
}

// shownOnce is the size from which a body that appeared before is not repeated.
const shownOnce = 500

// text returns the whole log.
func (g *golden) text() ([]byte, error) {
	var b bytes.Buffer
	shown := map[string]bool{}
	for _, e := range g.entries {
		head, body := g.masks.mask(e.head, true), g.masks.mask(e.body, true)
		b.WriteString(head + "\n")
		if len(body) >= shownOnce {
			name := fmt.Sprintf("body %x", sha256.Sum256([]byte(body)))[:13]
			b.WriteString(name + "\n")
			if shown[name] {
				body = ""
			}
			shown[name] = true
		}
		if body != "" {
			b.WriteString(body + "\n")
		}
		b.WriteByte('\n')
	}
	for _, part := range []struct {
		title string
		read  func() ([]string, error)
	}{{"mails that the script does not read", g.unread}, {"events", g.events}, {"records", g.records}} {
		all, err := part.read()
		if err != nil {
			return nil, fmt.Errorf("read the %s: %w", part.title, err)
		}
		slices.Sort(all)
		fmt.Fprintf(&b, "--- %s\n%s\n\n", part.title, strings.Join(all, "\n"))
	}
	return b.Bytes(), nil
}
