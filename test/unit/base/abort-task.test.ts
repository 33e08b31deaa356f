import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { onAbort } from '../../../src/base/abort-task.js'

test('a signal has one listener for any number of tasks, which are done in their order', () => {
  const controller = new AbortController()
  const { signal } = controller
  const done: number[] = []
  for (let task = 0; task < 100; task++) onAbort(signal, () => done.push(task))
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  controller.abort()
  expect(done).toEqual(Array.from({ length: 100 }, (_, task) => task))
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
})

test('a withdrawn task is not done, and with the last one the listener is removed', () => {
  const controller = new AbortController()
  const { signal } = controller
  const done: string[] = []
  const takeBack = ['one', 'two', 'three'].map(name => onAbort(signal, () => done.push(name)))
  takeBack[1]!()
  takeBack[1]!()
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  takeBack[0]!()
  takeBack[2]!()
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  onAbort(signal, () => done.push('four'))
  takeBack[0]!()
  controller.abort()
  expect(done).toEqual(['four'])
})

test('a task may withdraw others while it runs', () => {
  const controller = new AbortController()
  const done: string[] = []
  const takeBack: (() => void)[] = []
  takeBack.push(
    onAbort(controller.signal, () => {
      done.push('one')
      for (const each of takeBack) each()
    }),
    onAbort(controller.signal, () => done.push('two')),
  )
  controller.abort()
  expect(done).toEqual(['one'])
})
