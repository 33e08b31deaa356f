import { expect, test } from 'vitest'
import { open } from '../../src/index.js'

test('the error of a task comes through several runs around it', async () => {
  await using box = await open('memory:')
  await using _held = await box.mutex('key').acquire()
  const nested = box
    .mutex('a')
    .run(() => box.mutex('b').run(() => box.mutex('c').run(() => box.mutex('key').run(() => 1, { wait: 0 }))))
  await expect(nested).rejects.toMatchObject({ code: 'BUSY', taskBegan: true })
})
