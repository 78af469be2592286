package embedded

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

const (
	defaultHost = "127.0.0.1"
	defaultPort = 4222
)

// serverOptions returns the server's options, those of its configuration file
// included and Listen excluded, and the file's warnings.
func (o Options) serverOptions() (so *server.Options, warnings []error, err error) {
	so = &server.Options{
		ServerName:             "belfry",
		NoSigs:                 true,
		MaxPayload:             bus.MaxPayload,
		JetStream:              true,
		JetStreamMaxMemory:     64 << 20,
		JetStreamMaxStore:      unreserved,
		DisableJetStreamBanner: true,
	}
	if o.Config == "" {
		so.StoreDir = o.Folder
		return so, nil, nil
	}
	so.Host, so.Port = defaultHost, defaultPort
	if warnings, err = readOptions(so, o.Config); err != nil {
		return nil, nil, errs.Wrap(err, errs.Invalid, "bus.config: %s can't be used", o.Config)
	}
	if reason := missing(so); reason != "" {
		return nil, nil, errs.New(errs.Invalid, "bus.config: %s: %s", o.Config, reason)
	}
	if so.StoreDir == "" {
		so.StoreDir = o.Folder
	}
	return so, append(warnings, sharedAccounts(so)...), nil
}

// readOptions sets the options of a configuration file.
func readOptions(o *server.Options, file string) (warnings []error, err error) {
	err = o.ProcessConfigFile(file)
	var found interface {
		Errors() []error
		Warnings() []error
	}
	if errors.As(err, &found) && len(found.Errors()) == 0 {
		return found.Warnings(), nil
	}
	return nil, redact(err)
}

// redact removes a quoted variable's value, which may be a secret, from an error
// of the configuration parser.
func redact(err error) error {
	const unread = "could not be parsed"
	if err == nil {
		return nil
	}
	if before, _, found := strings.Cut(err.Error(), unread); found {
		return errors.New(before + unread + "; use a value of letters and digits that begins with a letter")
	}
	return err
}

// missing says why a configuration can't hold belfry's events, "" when it can.
func missing(o *server.Options) string {
	switch {
	case !o.JetStream:
		return "jetstream is disabled, and belfry keeps its events there; remove that, or write jetstream: enabled"
	case o.MaxPayload < bus.MaxPayload:
		return "max_payload is " + strconv.Itoa(int(o.MaxPayload)) + " bytes; belfry's messages need 1MB"
	case o.Cluster.Port != 0 && !o.SyncAlways:
		return "a cluster needs jetstream.sync_interval: always; else an acknowledged event may be on the disk of " +
			"none of its servers"
	}
	if user, found := passwordless(o); found {
		return "user " + user + " has an empty password; is its variable of the environment empty?"
	}
	return ""
}

// passwordless returns a user with an empty password that is not the configured
// no_auth_user: anyone could log in as that user.
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

// admitsEveryone reports whether a server has no authentication at all.
func admitsEveryone(o *server.Options) bool {
	return o.Username == "" && o.Authorization == "" && len(o.Users)+len(o.Nkeys) == 0 &&
		len(o.TrustedOperators)+len(o.TrustedKeys) == 0 && o.AuthCallout == nil
}

// joined reports whether a server is connected to others, so that its own
// subscriptions do not show all interest in a subject.
func joined(o *server.Options) bool {
	return o.Cluster.Port != 0 || o.Gateway.Name != "" || o.LeafNode.Port != 0 || len(o.LeafNode.Remotes) > 0
}

// Check reports errs.Invalid for a configuration file that the server can't use.
func (o Options) Check() error {
	_, _, err := o.serverOptions()
	return err
}

// Warnings are about settings that a usable configuration file should not have.
func (o Options) Warnings() []error {
	_, warnings, _ := o.serverOptions()
	return warnings
}

// Address is where other processes of this machine reach the server when it
// runs; empty when it has no listener. It reports errs.Invalid for a
// configuration file that can't be used, and for port 0, which is another port
// at each start.
func (o Options) Address() (string, error) {
	listen, scheme, of := o.Listen, "nats", "bus.listen"
	if o.Config != "" {
		so, _, err := o.serverOptions()
		if err != nil {
			return "", err
		}
		if listen == "" {
			listen, of = net.JoinHostPort(so.Host, strconv.Itoa(max(so.Port, 0))), "listen in "+o.Config
		}
		if so.TLSConfig != nil {
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

// streamsFolders are the folders of belfry's streams, one per account: usually
// there is one account.
func streamsFolders(folder string) ([]string, error) {
	accounts, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, account := range accounts {
		streams := filepath.Join(folder, account.Name(), "streams")
		if _, err := os.Stat(filepath.Join(streams, bus.StreamEvents)); err == nil {
			found = append(found, streams)
		}
	}
	if len(found) == 0 {
		return nil, &fs.PathError{Op: "find stream " + bus.StreamEvents, Path: folder, Err: fs.ErrNotExist}
	}
	return found, nil
}

// Streams returns the folder that the server keeps its streams in, without links followed; "" if its configuration file
// can't be used.
func (o Options) Streams() string {
	so, _, err := o.serverOptions()
	if err != nil {
		return ""
	}
	folder, err := filepath.Abs(storeFolder(so))
	if err != nil {
		return ""
	}
	return folder
}

// storeFolder is the folder of the accounts' streams.
func storeFolder(o *server.Options) string {
	return filepath.Join(o.StoreDir, server.JetStreamStoreDir)
}
