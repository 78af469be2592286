package embedded

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/pkg/errs"
)

// consumerFolder is where the server keeps a consumer, in the folder of its accounts' streams.
type consumerFolder struct{ account, stream, consumer string }

func (c consumerFolder) path(folder string) string {
	return filepath.Join(folder, c.account, "streams", c.stream, "obs", c.consumer)
}

// consumerFolders lists the consumers that have a folder.
func consumerFolders(folder string) ([]consumerFolder, error) {
	paths, err := filepath.Glob(consumerFolder{"*", "*", "*"}.path(folder))
	var all []consumerFolder
	for _, path := range paths {
		stream := filepath.Dir(filepath.Dir(path))
		all = append(all, consumerFolder{filepath.Base(filepath.Dir(filepath.Dir(stream))), filepath.Base(stream),
			filepath.Base(path)})
	}
	return all, err
}

// removeDamaged removes the folders of consumers that existed before the server started and that it could not read:
// after a power cut their files can be empty or cut off. The server continues without such a consumer, and refuses to
// create it again while the folder exists, so its listener would never receive an event again. A recreated consumer
// delivers all events of its stream, including those that were handled.
func (s *Server) removeDamaged(i *instance, before []consumerFolder) error {
	if len(before) == 0 || i.joined {
		return nil // the other servers have the consumers too
	}
	info, err := i.server.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Consumer: true, DirectConsumer: true})
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "the embedded bus does not list its consumers")
	}
	streams, consumers := map[consumerFolder]bool{}, map[consumerFolder]bool{}
	for _, account := range info.AccountDetails {
		for _, stream := range account.Streams {
			streams[consumerFolder{account.Name, stream.Name, ""}] = true
			for _, c := range append(stream.Consumer, stream.DirectConsumer...) {
				consumers[consumerFolder{account.Name, stream.Name, c.Name}] = true
			}
		}
	}
	var failed []error
	for _, c := range before {
		if consumers[c] || !streams[consumerFolder{c.account, c.stream, ""}] {
			continue
		}
		s.log.Warn("the position of a listener can't be read, probably since a power failure: it receives all events "+
			"of its stream again", "stream", c.stream, "consumer", c.consumer)
		failed = append(failed, os.RemoveAll(c.path(i.folder)))
	}
	return errs.Wrap(errors.Join(failed...), errs.Unavailable, "the embedded bus's folder can't be written")
}
