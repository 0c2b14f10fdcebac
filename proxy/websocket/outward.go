package websocket

import (
	"bufio"
	"io"
)

// outward relays the client's frames to the upstream.
func (r *Relay) outward() error {
	from := &paced{client: r.Client, span: r.Pace}
	in := bufio.NewReaderSize(from, ahead)
	var order sequence
	var text utf8State
	for {
		from.end()
		if _, err := in.Peek(1); err != nil {
			return err
		}
		from.begin()
		h, err := readHeader(in, true)
		if err == nil {
			err = order.next(h)
		}
		if err != nil {
			return err
		}
		theirs := h.mask
		h.mask = newMask()
		if h.control() {
			payload := make([]byte, h.length)
			if _, err := io.ReadFull(in, payload); err != nil {
				return unexpected(err)
			}
			apply(theirs, payload, 0)
			if err := r.controlOutward(h, payload); err != nil {
				return err
			}
			continue
		}
		if err := r.frameOutward(in, h, theirs, order, &text); err != nil {
			return err
		}
	}
}

func (r *Relay) controlOutward(h header, payload []byte) error {
	if err := validateClose(h, payload); err != nil {
		return err
	}
	frame := append(h.append(make([]byte, 0, 139)), payload...)
	apply(h.mask, frame[len(frame)-len(payload):], 0)
	r.toUpstream.Lock()
	defer r.toUpstream.Unlock()
	r.Sent += h.length
	_, err := r.Upstream.Write(frame)
	return err
}

func (r *Relay) frameOutward(in *bufio.Reader, h header, theirs [4]byte, order sequence, text *utf8State) error {
	r.toUpstream.Lock()
	defer r.toUpstream.Unlock()
	defer r.ToUpstream.Move(0)
	r.ToUpstream.Stall(0) // until all of it has arrived, and was written
	if h.length > 0 {
		if _, err := in.Peek(1); err != nil {
			return unexpected(err)
		}
	}
	pooled := buffers.Get().(*[room + piece]byte)
	defer buffers.Put(pooled)
	buf := pooled[:]
	out := h.append(buf[:0])
	for at := int64(0); at < h.length || at == 0; {
		n := int(min(h.length-at, piece))
		data := buf[len(out) : len(out)+n]
		// Read only what has arrived: a frame is forwarded as it comes.
		if n > 0 {
			var err error
			if n, err = in.Read(data); err != nil {
				return unexpected(err)
			}
			data = data[:n]
		}
		apply(theirs, data, at)
		if order.text && !text.accept(data, h.fin && at+int64(n) == h.length) {
			return violation{notUTF8, "a text message is not UTF-8"}
		}
		r.record(true, h.op, data, h.fin && at+int64(n) == h.length)
		apply(h.mask, data, at)
		if _, err := r.Upstream.Write(buf[:len(out)+n]); err != nil {
			return err
		}
		out, h.op = out[:0], opContinuation
		r.Sent += int64(n)
		if at += int64(n); h.length == 0 {
			return nil
		}
	}
	return nil
}
