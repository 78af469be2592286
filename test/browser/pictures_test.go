package browser

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"belfry/test/kit"
)

var (
	screenshots = flag.String("screenshots", "", "the folder to write the pictures to that docs show")
	variants    = flag.String("variants", "",
		"a folder to write pictures of all pages to: light and dark, wide and small")
)

var shownPicture = regexp.MustCompile(`\]\((?:\.\./)?images/([a-z0-9-]+)\.png\)`)

// picturesOfDocs returns the names of the pictures that the docs show, those of hosted pages or the others; none without
// the flag.
func picturesOfDocs(t *testing.T, hosted bool) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	if *screenshots == "" {
		return all
	}
	err := filepath.WalkDir("../../docs", func(page string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(page) != ".md" {
			return err
		}
		text, err := os.ReadFile(page)
		for _, name := range shownPicture.FindAllSubmatch(text, -1) {
			if strings.HasPrefix(string(name[1]), "hosted-") == hosted {
				all[string(name[1])] = false
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checkPictures fails the test for pictures in the docs that no part of it has taken.
func (f *fixture) checkPictures(t *testing.T) {
	t.Helper()
	for name, taken := range f.pictures {
		if !taken {
			t.Errorf("the docs show %s.png, which is the name of no page here", name)
		}
	}
}

// The height of a picture follows the page's within these bounds.
const minPicture, maxPicture = 400, 1150

// picture writes the picture of the page, if docs show it: wide and light, with what is of this machine and this run
// (folders, ports, the host, its disk) replaced by what a deployment has.
func (f *fixture) picture(t *testing.T, name string) {
	t.Helper()
	if _, shown := f.pictures[name]; !shown {
		return
	}
	f.pictures[name] = true
	replaced, err := json.Marshal(f.ofThisRun(t))
	if err != nil {
		t.Fatal(err)
	}
	height := evaluate[int64](t, f, `(() => {
		document.activeElement.blur();
		scrollTo(0, 0);
		const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (texts.nextNode()) for (const [from, to] of `+string(replaced)+
		`) texts.currentNode.data = texts.currentNode.data.replaceAll(from, to);
		for (const dt of document.querySelectorAll("dt")) {
			if (dt.textContent === "Host") dt.nextElementSibling.textContent = "server";
			if (dt.textContent === "Process") dt.nextElementSibling.textContent = "1";
		}
		const disk = document.querySelectorAll("[aria-labelledby=disks] td");
		if (disk.length) [disk[1].textContent, disk[2].textContent] = ["71.0 GiB of 100.0 GiB", "29 %"];
		return Math.ceil(document.querySelector("main").getBoundingClientRect().bottom);
	})()`)
	ctx, cancel := kit.Patience(f.tab, patience)
	defer cancel()
	_, err = chromedp.Call(ctx,
		emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 1280,
			Height: min(max(height, minPicture), maxPicture), DeviceScaleFactor: 1})
	if err != nil {
		t.Fatal(err)
	}
	taken, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		taken, err = smaller(taken)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), taken, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.screen(t, wide)
}

// ofThisRun returns texts of this machine and this run, and what pictures show instead.
func (f *fixture) ofThisRun(t *testing.T) [][2]string {
	t.Helper()
	all := [][2]string{{f.folder, "/srv/belfry"}}
	for _, a := range []struct {
		url  string
		port int
	}{{f.server.URL, 8080}, {f.server.Bus, 4222}, {f.server.Metrics, 9464}} {
		u, err := url.Parse(a.url)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"127.0.0.1:", "localhost:"} {
			all = append(all, [2]string{host + u.Port(), host + strconv.Itoa(a.port)})
		}
	}
	return all
}

// smaller returns a picture with 256 colors, which takes half of the bytes.
func smaller(data []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	size := full.Bounds()
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	var colors []color.RGBA
	for c := range count {
		colors = append(colors, c)
	}
	// A color that only a few dots have, as those of the logo, is in the palette if none like it is.
	slices.SortFunc(colors, func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	like := map[color.RGBA]bool{}
	for i, c := range colors {
		kind := color.RGBA{R: c.R >> 4, G: c.G >> 4, B: c.B >> 4}
		if len(palette) < 256 && (i < 128 || !like[kind]) {
			palette = append(palette, c)
		}
		like[kind] = true
	}
	index := map[color.RGBA]uint8{}
	for _, c := range colors {
		index[c] = uint8(palette.Index(c)) //nolint:gosec // of 256
	}
	small := image.NewPaletted(size, palette)
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			small.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small)
	return out.Bytes(), err
}

// variant writes a picture of the page as it is, for who works on the pages.
func (f *fixture) variant(t *testing.T, name string) {
	t.Helper()
	if *variants == "" {
		return
	}
	ctx, cancel := kit.Patience(f.tab, patience)
	defer cancel()
	taken, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(*variants, name+".png"), taken, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
