import { expect, test } from 'vitest'
import { eventBytes } from '../src/page-kit/events.js'
import { followEvents } from '../src/page-kit/browser/event-stream.js'

test('messages are taken one by one, wherever the network cuts them', async () => {
  const messages = [{ text: 'a\n\nb' }, { text: 'ü' }, { text: '' }]
  const all = messages.flatMap(message => [...eventBytes(message)])
  for (const size of [1, 2, 3, all.length]) {
    const pieces = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < all.length; at += size)
          controller.enqueue(Uint8Array.from(all.slice(at, at + size)))
        controller.close()
      },
    })
    const stop = new AbortController()
    const taken: unknown[] = []
    await followEvents(
      {
        open: () =>
          Promise.resolve(new Response(pieces, { headers: { 'Content-Type': 'text/event-stream' } })),
        take(message, isFirst) {
          taken.push([message, isFirst])
          if (taken.length === messages.length) stop.abort()
        },
        lost: reason => {
          stop.abort()
          throw new Error(reason)
        },
      },
      stop.signal,
    )
    expect(taken).toEqual(messages.map((message, index) => [message, index === 0]))
  }
})
