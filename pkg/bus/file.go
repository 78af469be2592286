package bus

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/pkg/errs"
)

const (
	defaultHost = "127.0.0.1"
	defaultPort = 4222
)

// options are the server's, those of its file included, without an address that
// is given beside it. warned says what is doubtful in the file.
func (e Embedded) options() (o *server.Options, warned []error, err error) {
	o = &server.Options{
		ServerName:             "belfry",
		NoSigs:                 true,
		MaxPayload:             maxPayload,
		JetStream:              true,
		JetStreamMaxMemory:     64 << 20,
		JetStreamMaxStore:      unreserved,
		DisableJetStreamBanner: true,
	}
	if e.Config == "" {
		o.StoreDir = e.Folder
		return o, nil, nil
	}
	o.Host, o.Port = defaultHost, defaultPort
	if warned, err = readOptions(o, e.Config); err != nil {
		return nil, nil, errs.Wrap(err, errs.Invalid, "bus.config: %s can't be used", e.Config)
	}
	if lacks := lacking(o); lacks != "" {
		return nil, nil, errs.New(errs.Invalid, "bus.config: %s: %s", e.Config, lacks)
	}
	if o.StoreDir == "" {
		o.StoreDir = e.Folder
	}
	return o, warned, nil
}

// readOptions sets what a file says.
func readOptions(o *server.Options, file string) (warned []error, err error) {
	err = o.ProcessConfigFile(file)
	var found interface {
		Errors() []error
		Warnings() []error
	}
	if errors.As(err, &found) && len(found.Errors()) == 0 {
		return found.Warnings(), nil
	}
	return nil, discreet(err)
}

// discreet is an error in a file without what it may quote of a variable's value.
func discreet(err error) error {
	const unread = "could not be parsed"
	if err == nil {
		return nil
	}
	if before, _, found := strings.Cut(err.Error(), unread); found {
		return errors.New(before + unread + "; a value of letters and digits that begins with a letter can be")
	}
	return err
}

// lacking says what a file has that belfry's events can't do with.
func lacking(o *server.Options) string {
	switch {
	case !o.JetStream:
		return "jetstream is disabled, and belfry keeps its events there; remove that, or write jetstream: enabled"
	case o.MaxPayload < maxPayload:
		return "max_payload is " + strconv.Itoa(int(o.MaxPayload)) + " bytes; belfry's messages need 1MB"
	case o.Cluster.Port != 0 && !o.SyncAlways:
		return "a cluster needs jetstream.sync_interval: always; else an acknowledged event may be on the disk of none of its servers"
	}
	if user, found := passwordless(o); found {
		return "user " + user + " has an empty password; is its variable of the environment empty?"
	}
	return ""
}

// passwordless finds a user whom everybody can pretend to be, though not meant so.
func passwordless(o *server.Options) (name string, found bool) {
	if o.Username != "" && o.Password == "" {
		return o.Username, true
	}
	for _, u := range o.Users {
		if u.Password == "" && u.Username != o.NoAuthUser && !o.TLSMap {
			return u.Username, true
		}
	}
	return "", false
}

// asksNobody reports whether a server lets everyone in.
func asksNobody(o *server.Options) bool {
	return o.Username == "" && o.Authorization == "" && len(o.Users)+len(o.Nkeys) == 0 &&
		len(o.TrustedOperators)+len(o.TrustedKeys) == 0 && o.AuthCallout == nil
}

// joined reports whether a server is one of several, and does not know itself
// who listens to what.
func joined(o *server.Options) bool {
	return o.Cluster.Port != 0 || o.Gateway.Name != "" || o.LeafNode.Port != 0 || len(o.LeafNode.Remotes) > 0
}

// Check reports errs.Invalid for a file that the server can't run by.
func (e Embedded) Check() error {
	_, _, err := e.options()
	return err
}

// Address is where other processes of this machine reach the server when it
// runs; empty when it has no listener. It reports errs.Invalid for a file that
// can't be used, and for an address that is another one at each start.
func (e Embedded) Address() (string, error) {
	listen, scheme, of := e.Listen, "nats", "bus.listen"
	if e.Config != "" {
		o, _, err := e.options()
		if err != nil {
			return "", err
		}
		if listen == "" {
			listen, of = net.JoinHostPort(o.Host, strconv.Itoa(max(o.Port, 0))), "listen in "+e.Config
		}
		if o.TLSConfig != nil {
			scheme = "tls"
		}
	}
	if listen == "" {
		return "", nil
	}
	host, port, err := net.SplitHostPort(listen)
	switch {
	case err != nil:
		return "", errs.Wrap(err, errs.Invalid, "%s: %q is not host:port", of, listen)
	case port == "0":
		return "", errs.New(errs.Invalid, "%s has port 0, another one after each start", of)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = defaultHost
	}
	return scheme + "://" + net.JoinHostPort(host, port), nil
}

// streamsFolders are where a server keeps the streams that are ours, an account
// each. There is one as a rule.
func streamsFolders(folder string) ([]string, error) {
	accounts, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, account := range accounts {
		streams := filepath.Join(folder, account.Name(), "streams")
		if _, err := os.Stat(filepath.Join(streams, StreamEvents)); err == nil {
			found = append(found, streams)
		}
	}
	if len(found) == 0 {
		return nil, &fs.PathError{Op: "find stream " + StreamEvents, Path: folder, Err: fs.ErrNotExist}
	}
	return found, nil
}

// storeFolder is where a server of these options has the accounts' streams.
func storeFolder(o *server.Options) string {
	return filepath.Join(o.StoreDir, server.JetStreamStoreDir)
}
