import { expect, test } from 'vitest'
import { onAbort } from '../../../src/base/abort-task.js'

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
