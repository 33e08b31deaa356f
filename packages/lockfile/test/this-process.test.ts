import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { isDead, thisProcess } from '../src/this-process.js'

test('this process lives', () => {
  expect(isDead(thisProcess())).toBe(false)
})

test('a process that has ended is dead', async () => {
  const child = spawn(process.execPath, ['--eval', '0'])
  const { pid } = child
  await once(child, 'exit')
  expect(isDead(`${pid} 1`)).toBe(true)
})

test.runIf(process.platform === 'linux')('a process that another one has replaced is dead', () => {
  expect(isDead(`${process.pid} 1`)).toBe(true)
})

test('nothing is known of a text that is not ours', () => {
  for (const text of ['', 'x', '1', '-1 1', `${process.pid} undefined`, '1 1 1'])
    expect(isDead(text)).toBe(false)
})
