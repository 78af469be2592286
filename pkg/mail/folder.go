package mail

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"belfry/pkg/errs"
)

// folder writes each mail to a file.
type folder struct {
	path    string
	onWrite func(file, link string)
}

var _ Sender = (*folder)(nil)

// NewFolder makes a sender that writes each mail to a file of its own, which mail
// programs can open. It creates the folder if necessary. Names sort by the mails'
// dates. Files are written atomically, and only their owner may read them.
// onWrite, if not nil, is called with the file and the link of each mail.
func NewFolder(path string, onWrite func(file, link string)) Sender {
	return &folder{path: path, onWrite: onWrite}
}

// Send implements Sender. The same mail with the same date replaces its file.
func (f *folder) Send(ctx context.Context, m Message) error {
	if err := ctx.Err(); err != nil {
		return errs.Wrap(err, errs.Canceled, "the mail was not written")
	}
	c, err := compose(m)
	if err != nil {
		return err
	}
	file := filepath.Join(f.path, c.date.Format("20060102T150405.000000000Z")+"-"+c.id+".eml")
	if err := f.write(file, c.content); err != nil {
		return &serverError{errs.Wrap(err, errs.Unavailable,
			"the mail can't be written to folder %s: check that belfry may write there and that the disk is not full",
			f.path), "its folder can't be written"}
	}
	if f.onWrite != nil {
		f.onWrite(file, m.Link)
	}
	return nil
}

func (f *folder) write(file string, content []byte) error {
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(f.path, ".mail-*") // 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(content)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return syncFolder(f.path)
}

// syncFolder makes renames in a folder durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
