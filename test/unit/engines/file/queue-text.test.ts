import { expect, test } from 'vitest'
import { entryOf, queueOf, queueText } from '../../../../src/engines/file/queue-text.js'

const TEXT = JSON.stringify([
  [7, 1, 'a.1', 'a', 2, 5000, 30_000, 12, 'a ],\n[ label', 10],
  [8, [2, 5], 'b.1', 'b', 0, 6000, 30_000, 0, null, 11],
])

test('a queue is read as it was written', () => {
  const queue = queueOf('key', TEXT)
  expect(queue.map(({ request }) => [request.ticket, request.id, request.phase, request.label])).toEqual([
    [7, 'a.1', 'held', 'a ],\n[ label'],
    [8, 'b.1', 'waiting', undefined],
  ])
  expect(queue.map(({ claim }) => claim)).toEqual([
    { key: 'key', mode: 'exclusive' },
    { key: 'key', mode: 'permits', permits: 2, max: 5 },
  ])
  expect(queueText(queue)).toBe(TEXT)
  expect(queueOf('key', '[]')).toEqual([])
})

test.each(['7', '"[]"', 'null', '{"a":1}', '[5]', '[[1,1]', ''])('a queue that is %s is reported', text => {
  expect(() => queueOf('key', text)).toThrow("can't read a row")
})

test.each(['7', 'null', '[1,1', ''])('a request of a tail that is %s is reported', text => {
  expect(() => entryOf('key', 'a.1', text)).toThrow("can't read a row")
})
