import { expect, test } from 'vitest'
import { queueOf, queueText, type NarrowEntry } from '../../../../src/engines/file/queue-text.js'

/** A queue as an earlier version has written it: without line breaks. */
const OLD = JSON.stringify([
  [7, 1, 'a.1', 'a', 2, 5000, 30_000, 12, 'a ],\n[ label', 10],
  [8, [2, 5], 'b.1', 'b', 0, 6000, 30_000, 0, null, 11],
])

test('a queue is read as it was written, by this version or an earlier one', () => {
  const queue = queueOf('key', OLD)
  expect(queue.map(({ request }) => [request.ticket, request.id, request.phase, request.label])).toEqual([
    [7, 'a.1', 'held', 'a ],\n[ label'],
    [8, 'b.1', 'waiting', undefined],
  ])
  expect(queue.map(({ claim }) => claim)).toEqual([
    { key: 'key', mode: 'exclusive' },
    { key: 'key', mode: 'permits', permits: 2, max: 5 },
  ])
  const text = queueText(queue)
  expect(JSON.parse(text)).toEqual(JSON.parse(OLD))
  expect(queueOf('key', text).map(plain)).toEqual(queue.map(plain))
  expect(queueOf('key', '[]')).toEqual([])
})

test('entries that have not changed are taken over', () => {
  const known = queueOf('key', queueText(queueOf('key', OLD)))
  const changed = queueOf('key', queueText(known))
  Object.assign(changed[0]!.request, { phase: 'waiting', text: undefined })
  const read = queueOf('key', queueText(changed), known)
  expect(read[0]).not.toBe(known[0])
  expect(read[0]!.request.phase).toBe('waiting')
  expect(known[0]!.request.phase).toBe('held')
  expect(read[1]).toBe(known[1])
})

test.each(['7', '"[]"', 'null', '{"a":1}', '[5]', '[[1,1]', ''])('a queue that is %s is reported', text => {
  expect(() => queueOf('key', text)).toThrow("can't read a row")
})

function plain({ request, claim }: NarrowEntry): unknown {
  return [{ ...request, text: '' }, claim]
}
