import { afterEach, expect, test, vi } from 'vitest'
import { runChaos } from '../../apps/chaos/command.js'
import { limits } from '../../apps/limits/command.js'
import { mutex } from '../../apps/mutex/command.js'
import { trains } from '../../apps/trains/command.js'

const URL = 'redis://user:swordfish@127.0.0.1:1'

afterEach(() => vi.restoreAllMocks().unstubAllEnvs())

/** Runs an application, and returns its exit status and output. */
async function printed(run: () => Promise<number>): Promise<{ status: number; text: string }> {
  let text = ''
  const write = (chunk: unknown): boolean => ((text += String(chunk)), true)
  vi.spyOn(process.stdout, 'write').mockImplementation(write)
  vi.spyOn(process.stderr, 'write').mockImplementation(write)
  return { status: await run(), text }
}

test.each([
  ['mutex', () => mutex([`--engin=${URL}`]), 2],
  ['chaos', () => runChaos(['--engine', URL.replace('redis', 'hazelcast'), '--peer', 'redlock']), 2],
  ['chaos', () => runChaos(['--seed', URL]), 2],
  ['limits', () => limits(['--redis', URL, '--limit', URL]), 2],
  ['trains', () => trains(['--engine', URL, '--processes', URL]), 2],
])('an error of %s shows no password', async (_, run, status) => {
  const { text, ...end } = await printed(run)
  expect(text).toMatch(/^error: /m)
  expect(text).not.toContain('swordfish')
  expect(end).toEqual({ status })
})

test('the help of chaos does not show the URL of the environment', async () => {
  vi.stubEnv('SIGNALBOX_URL', URL)
  const { status, text } = await printed(() => runChaos(['--help']))
  expect(status).toBe(0)
  expect(text).toContain('SIGNALBOX_URL')
  expect(text).not.toContain('swordfish')
})
