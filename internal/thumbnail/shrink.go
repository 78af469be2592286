package thumbnail

import (
	"context"
	"image"
	"image/draw"

	"belfry/pkg/errs"
)

// strip is how many rows are converted at once.
const strip = 16

// shrink returns a part of a picture with fewer pixels, each the mean of those that it stands for. It needs memory for
// some rows of the source only: scalers for pictures of any size keep a column of all rows in floating point.
func shrink(ctx context.Context, source image.Image, from image.Rectangle, width, height int) (*image.RGBA, error) {
	small := image.NewRGBA(image.Rect(0, 0, width, height))
	rows := image.NewRGBA(image.Rect(0, 0, from.Dx(), min(strip, from.Dy())))
	sums := newSums(from.Dx(), width)
	row := 0 // of small, that is being summed
	for y := 0; y < from.Dy(); y++ {
		if y%strip == 0 {
			if err := ctx.Err(); err != nil {
				return nil, errs.Wrap(err, errs.Canceled, "the request for a thumbnail ended")
			}
			draw.Draw(rows, rows.Bounds(), source, from.Min.Add(image.Pt(0, y)), draw.Src)
		}
		pixels := rows.Pix[y%strip*rows.Stride:][:4*from.Dx()]
		// The row of the source begins at y*height, and ends at (y+1)*height, in units in which one of small has
		// from.Dy().
		begin, end := uint64(y)*uint64(height), uint64(y+1)*uint64(height)
		for begin < end {
			edge := uint64(row+1) * uint64(from.Dy())
			part := min(end, edge) - begin
			sums.add(pixels, part)
			if begin += part; begin == edge {
				sums.write(small.Pix[row*small.Stride:], uint64(from.Dy()))
				row++
			}
		}
	}
	return small, nil
}

// sums are the weighted sums of the pixels of a row.
type sums struct {
	from, to int
	of       []uint64 // four for each pixel of the result
}

func newSums(from, to int) *sums { return &sums{from, to, make([]uint64, 4*to)} }

// add adds a row of the source with a weight.
func (s *sums) add(pixels []byte, weight uint64) {
	to := 0
	edge := s.from // where the pixel of the result ends, in units in which one of the source has s.to
	for x := range s.from {
		p := pixels[4*x : 4*x+4 : 4*x+4]
		for begin, end := x*s.to, (x+1)*s.to; begin < end; {
			part := min(end, edge) - begin
			w := weight * uint64(part)
			o := s.of[4*to : 4*to+4 : 4*to+4]
			o[0] += w * uint64(p[0])
			o[1] += w * uint64(p[1])
			o[2] += w * uint64(p[2])
			o[3] += w * uint64(p[3])
			if begin += part; begin == edge {
				to++
				edge += s.from
			}
		}
	}
}

// write writes the means, whose rows have a weight, and begins the next row.
func (s *sums) write(pixels []byte, rows uint64) {
	whole := rows * uint64(s.from)
	for i, sum := range s.of {
		pixels[i] = byte((sum + whole/2) / whole)
		s.of[i] = 0
	}
}
