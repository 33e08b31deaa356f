import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Report } from '../../apps/trains/report/report.js'
import { startRedis, type RedisServer } from '../servers/redis.js'

const program = fileURLToPath(new URL('../../dist/apps/trains/main.js', import.meta.url))
/** One day of the bundled timetable. */
const DAY = { messages: 3321, created: 218, moved: 2885, deleted: 218 }
const TIME_LIMIT = 120_000

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(async () => {
  await server.stop()
})

test(
  'the tracker on Redis ends as the serial result says although workers are killed',
  { timeout: 2 * TIME_LIMIT },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-trains-'))
    try {
      const json = join(folder, 'report.json')
      const argv = ['--engine', server.url, '--processes', '4', '--days', '2', '--kill', '4', '--json', json]
      const child = spawn(process.execPath, [program, ...argv], { cwd: folder, timeout: TIME_LIMIT })
      let output = ''
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => (output += text))
      }
      const status = await new Promise(resolve => child.on('close', resolve))
      expect(status, output).toBe(0)
      const report = JSON.parse(readFileSync(json, 'utf8')) as Report
      expect(report).toMatchObject({
        messages: 2 * DAY.messages,
        created: 2 * DAY.created,
        moved: 2 * DAY.moved,
        deleted: 2 * DAY.deleted,
        ignored: 0,
        deadLettered: 0,
        matchesSerial: true,
      })
      expect(report.kills).toHaveLength(4)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
)
