package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/app/hold"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/mapping/verify"
)

// belfry runs a command line and checks its exit code and that it says
// something.
func belfry(t *testing.T, code int, says string, args ...string) {
	t.Helper()
	var out, errOut bytes.Buffer
	got := run(t.Context(), args, streams{strings.NewReader(""), &out, &errOut})
	if text := out.String() + errOut.String(); got != code || !strings.Contains(text, says) {
		t.Errorf("belfry %s: exit %d instead of %d, or it does not say %q:\n%s", strings.Join(args, " "), got, code,
			says, text)
	}
	if code != exitDone && errOut.Len() == 0 {
		t.Errorf("belfry %s: nothing on standard error", strings.Join(args, " "))
	}
}

func TestUsage(t *testing.T) {
	belfry(t, 0, "config check")
	belfry(t, 0, "--listen", "serve", "--help")
	belfry(t, 0, "belfry ", "version")
	belfry(t, 2, "belfry --help", "sreve")
	belfry(t, 2, "--prot", "serve", "--prot", "80")
	belfry(t, 2, "unexpected argument", "verify", "Books")
	belfry(t, 2, "<store>", "export")
	belfry(t, 2, "<store>", "import")
}

func TestWrongConfiguration(t *testing.T) {
	folder := t.TempDir()
	wrong := filepath.Join(folder, "wrong.yaml")
	if err := os.WriteFile(wrong, []byte("stores:\n  Books: {exposed: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"serve", "-c"}, {"verify", "-c"}, {"export", "Books", "-c"},
		{"import", "Books", "-", "-c"}, {"config", "check"}} {
		for file, says := range map[string]string{
			wrong: wrong +
				":2:11: stores.Books.exposed: unknown key; did you mean expose?",
			filepath.Join(folder, "none.yaml"): "none.yaml: cannot be read: no such file or directory",
			folder:                             folder + ": cannot be read: is a directory",
		} {
			belfry(t, 2, says, append(command, file)...)
		}
	}
	belfry(t, 2, "; --config names another file", "serve", "-c", filepath.Join(folder, "none.yaml"))
	good := filepath.Join(folder, "good.yaml")
	if err := os.WriteFile(good,
		[]byte("stores:\n  Authors: {}\n  Books: {expose: {}, map: {Authors: {key: a, target: books, when: "+
			"source.public}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	belfry(t, 0, "good.yaml: good: 2 stores, 1 mapping\nAuthors.books has an object of Books only when source.public\n",
		"config", "check", good)
	sized := filepath.Join(folder, "sized.yaml")
	if err := os.WriteFile(sized, []byte("stores:\n  Authors: {computed: {n: size(books)}}\n  Books: {map: {Authors: "+
		"{key: a, target: books}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	belfry(t, 0, "sized.yaml:2:24: stores.Authors.computed.n: ", "config", "check", sized)
	belfry(t, 2, "not \"nonsense\": correct --listen or BELFRY_LISTEN", "serve", "-c", good, "--listen", "nonsense")
	belfry(t, 2, "correct --metrics-listen", "serve", "-c", good, "--metrics-listen", "nonsense")
	belfry(t, 2, "the data folder has no data yet", "verify", "-c", good)
	check := []string{"access", "check", "-c", good, "--store", "Books"}
	belfry(t, 2, "--op", check...)
	belfry(t, 2, `--op must be one of "create","get","list","update","delete"`, append(check, "--op", "read")...)
	belfry(t, 2, "--uuid: get needs the uuid of an object", append(check, "--op", "get")...)
	belfry(t, 2, "--uuid: create has no object yet", append(check, "--op", "create", "--uuid", "emma")...)
	belfry(t, 2, "--input: delete sends no object",
		append(check, "--op", "delete", "--uuid", "emma", "--input", "{}")...)
	belfry(t, 2, "--aal: expected 1, or 2", append(check, "--op", "create", "--aal", "3")...)
	belfry(t, 2, "--input: expected a JSON object: malformed JSON", append(check, "--op", "create", "--input", "{")...)
	belfry(t, 2, "the data folder has no data yet", append(check, "--op", "create", "--input", "{}")...)
	belfry(t, 2, "the data folder has no data yet", "export", "Books", "-c", good, "--data",
		filepath.Join(folder, "none"))
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		says string
	}{
		{nil, 0, ""},
		{command.ErrFound, 1, ""},
		{errors.New("any"), 1, "belfry: any\n"},
		{errs.New(errs.Unavailable, "away"), 1, "belfry: away\n"},
		{errs.New(errs.Invalid, "wrong"), 2, "belfry: wrong\n"},
		{config.Problems{}, 2, "\n"},
		{context.Canceled, 130, "belfry: interrupted\n"},
		{errs.Wrap(context.Canceled, errs.Unavailable, "given up"), 130, "belfry: interrupted\n"},
		{context.DeadlineExceeded, 1, "belfry: context deadline exceeded\n"},
	} {
		var said bytes.Buffer
		if code := report(c.err, &said); code != c.code || said.String() != c.says {
			t.Errorf("%v: exit %d, %q", c.err, code, said.String())
		}
	}
}

func TestServeStopsGracefully(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "belfry.yaml")
	if err := os.WriteFile(file, []byte("listen: 127.0.0.1:0\nbus: {listen: \"\"}\nlog: {format: json}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	read, written := io.Pipe()
	logged := make(chan []string)
	go func() {
		var lines []string
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			lines = append(lines, scanner.Text())
			if strings.Contains(scanner.Text(), `"msg":"ready"`) {
				stop(errors.New("terminated signal received"))
			}
		}
		logged <- lines
	}()
	var out bytes.Buffer
	code := run(ctx, []string{"serve", "-c", file}, streams{nil, &out, written})
	_ = written.Close()
	lines := <-logged
	errOut := strings.Join(lines, "\n")
	stopping := slices.IndexFunc(lines, func(line string) bool {
		return strings.Contains(line, `"msg":"stopping","reason":"terminated signal received"`)
	})
	if code != 0 || stopping < 0 || !strings.Contains(lines[len(lines)-1], `"msg":"stopped"`) {
		t.Errorf("exit %d; the log has to say stopping, with the reason, and to end with stopped:\n%s", code, errOut)
	}
	if out.Len() > 0 || !strings.Contains(errOut, `,"http":"http://127.0.0.1:`) || strings.Contains(errOut, "token=") {
		t.Errorf("what programs read is JSON alone, with the address and without the link of the first admin: %s\n%s",
			out.String(), errOut)
	}
	if stopping > 0 && !strings.Contains(lines[stopping-1], `"msg":"ready"`) {
		t.Errorf("the stop begins before the log says so: %s", lines[stopping-1])
	}
	belfry(t, 0, "0 differences", "verify", "-c", file)
}

// An export writes the complete file or none, and does not replace what is not a
// regular file.
func TestExportWritesWholeFilesOnly(t *testing.T) {
	l := newLibrary(t)
	l.want(0, "1 created", `{"uuid":"lem"}`, "Authors", "-")
	export := func(code int, says, output string) {
		t.Helper()
		if got, out, errOut := l.belfry(t.Context(), nil, "export", "Authors", "-o", output); got != code ||
			!strings.Contains(out+errOut, says) {
			t.Errorf("-o %s: exit %d, want %d and %q: %s%s", output, got, code, says, out, errOut)
		}
	}
	file := l.write("old.jsonl", "old\n")
	export(0, "", file)
	if data, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(data), `{"uuid":"lem"`) {
		t.Errorf("%s, %v", data, err)
	}
	export(2, "is a folder; a file is expected", l.folder)
	export(2, "can't write a file beside", filepath.Join(l.folder, "none", "x"))

	pipe := filepath.Join(l.folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		data, _ := os.ReadFile(pipe)
		read <- string(data)
	}()
	export(0, "", pipe)
	if got := <-read; !strings.HasPrefix(got, `{"uuid":"lem"`) {
		t.Errorf("the pipe brought %q", got)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode().IsRegular() {
		t.Errorf("the pipe is %v, %v", info, err)
	}

	kept := l.write("kept.jsonl", "old\n")
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if code, _, errOut := l.belfry(ctx, nil, "export", "Authors", "-o", kept); code != 130 {
		t.Errorf("interrupted: exit %d: %s", code, errOut)
	}
	if data, err := os.ReadFile(kept); err != nil || string(data) != "old\n" {
		t.Errorf("what was there is lost: %s, %v", data, err)
	}
	if left, err := filepath.Glob(filepath.Join(l.folder, "*.jsonl.*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

func TestVerifyReport(t *testing.T) {
	r := &command.Report{Report: &verify.Report{
		Mappings: 2, Objects: 5, Targets: 1, Entries: 3, Pending: 4, Repaired: 1, More: 2,
		Differences: []verify.Difference{{Kind: "missing", Target: "Authors", Holder: "lem", Array: "books",
			Source: "Books", UUID: "eden"}},
	}, Binaries: &binary.Report{
		Services: 1, Records: 2, Contents: 3,
		Differences: []binary.Difference{
			{Kind: binary.Lost, Service: "files", Hash: "abc",
				Place: binary.Place{Store: "Books", UUID: "eden", Property: "covers", Index: 1}},
			{Kind: binary.Unreferenced, Service: "files", Hash: "def"},
		},
	}}
	var out bytes.Buffer
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"missing   Authors lem.books: Books eden\n", "... and 2 more\n", "repaired  1\n", "4 events not on the bus yet",
		"3 entries: 3 differences\n",
		"lost      files Books eden.covers[1]: abc\n", "unreferenced files: def\n",
		"1 service of binaries, 2 records, 3 contents: 2 differences\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// A good configuration is printed as who may do what, with a mark where everyone may as nothing says who.
func TestConfigCheckPrintsWhoMayDoWhat(t *testing.T) {
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	for text, want := range map[string]string{
		"stores:\n  Books: {expose: {list: true}, policy: {create: user != null, get: \"true\", update: session.aal " +
			"== 2}}\n  Pages: {policy: owner}\nbinaries: {b: {map: {Pages: [files]}}}\n": `: good: 2 stores, 0 mappings
store   create    get       list      update    delete
Books   any user  everyone  everyone  rule      nobody
Idents  no route  no route  no route  no route  no route
Pages   no route  no route  no route  no route  no route  its files: get owner or public, update owner
Users   no route  no route  no route  no route  no route
`,
		"stores:\n  Books: {expose: {}, policy: {default: allow, create: \"false\"}}\n": `: good: 1 store, 0 mappings
store   create    get          list      update       delete
Books   nobody    everyone(!)  no route  everyone(!)  everyone(!)
Idents  no route  no route     no route  no route     no route
Users   no route  no route     no route  no route     no route
(!) open to all: no rule of a policy says who may
`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errOut bytes.Buffer
		got := run(t.Context(), []string{"config", "check", file}, streams{strings.NewReader(""), &out, &errOut})
		if got != exitDone || out.String() != file+want || errOut.Len() > 0 {
			t.Errorf("exit %d, %s:\n%s, want\n%s", got, errOut.String(), out.String(), file+want)
		}
	}
}

// A signal ends a belfry that waits for a command as one that serves.
func TestServeStopsWhileItWaitsForACommand(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "belfry.yaml")
	if err := os.WriteFile(file, []byte("listen: 127.0.0.1:0\nbus: {listen: \"\"}\nlog: {format: json}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lock, err := hold.LockData(filepath.Join(folder, "data"), "backup")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	ctx, stop := context.WithCancelCause(t.Context())
	read, written := io.Pipe()
	logged := make(chan string)
	go func() {
		var lines strings.Builder
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			lines.WriteString(scanner.Text() + "\n")
			if strings.Contains(scanner.Text(),
				`"msg":"waiting for a command that holds the data folder","command":"belfry backup"`) {
				stop(errors.New("terminated signal received"))
			}
		}
		logged <- lines.String()
	}()
	code := run(ctx, []string{"serve", "-c", file}, streams{nil, io.Discard, written})
	_ = written.Close()
	if text := <-logged; code != 0 ||
		!strings.Contains(text, `"msg":"stopped before it was ready","reason":"terminated signal received"`) {
		t.Errorf("exit %d:\n%s", code, text)
	}
	lock.Unlock()
}
