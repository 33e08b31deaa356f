import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { trains } from '../../../apps/trains/command.js'
import { checkWritable } from '../../../apps/output-file.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trains-output-'))
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true })
})

describe('a file that a run is to write', () => {
  test.for(['--json', '--dead-letters'])(
    'is refused before the start when %s names a folder',
    async option => {
      const taken = join(folder, 'taken')
      mkdirSync(taken)
      const complaints = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
      const letters = join(folder, 'letters.ndjson')
      const status = await trains([
        ...['--engine', `file:${folder}/state`, '--dead-letters', letters],
        ...[option, taken],
      ])
      expect(status).toBe(2)
      expect(complaints.mock.calls.join('')).toContain(`can't write ${taken}: EISDIR`)
      expect(existsSync(join(folder, 'state'))).toBe(false)
    },
  )

  test('is left as it was by the check', () => {
    const path = join(folder, 'report.json')
    checkWritable(path)
    expect(readdirSync(folder)).toEqual([])
    writeFileSync(path, 'earlier')
    checkWritable(path)
    expect(readFileSync(path, 'utf8')).toBe('earlier')
  })
})
