import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Journal, type JournalEntry } from '../../../support/file/journal.js'

let folder: string
let journal: Journal

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-journal-'))
  journal = new Journal(join(folder, 'journal'))
})

afterEach(() => rmSync(folder, { recursive: true }))

function enter(who: string, token: number, ...keys: string[]): JournalEntry {
  return { what: 'in', who, keys, token: String(token), at: 0, waited: token }
}

function leave(who: string): JournalEntry {
  return { what: 'out', who, at: 0 }
}

function write(...entries: JournalEntry[]): void {
  for (const entry of entries) appendFileSync(journal.path, `${JSON.stringify(entry)}\n`)
}

test('successive holders are fine, and so are holders of other keys', () => {
  write(enter('x', 1, 'a', 'b'), enter('y', 2, 'c'), leave('x'), enter('z', 3, 'b'), leave('y'), leave('z'))
  expect(journal.judge()).toEqual({ rounds: 3, killedInside: 0, longestWait: 3, wrongs: [] })
  expect(journal.rounds('y')).toBe(1)
})

test('two at one key are found', () => {
  write(enter('x', 1, 'a', 'b'), enter('y', 2, 'b', 'c'))
  expect(journal.judge().wrongs).toEqual(['y came to b while x was there'])
})

test('a token that does not rise is found', () => {
  write(enter('x', 2, 'a'), leave('x'), enter('y', 2, 'a'))
  expect(journal.judge().wrongs).toEqual(['the token of a fell to 2'])
})

test('a killed one makes room, whether its last lines come before the kill or after its announcement', () => {
  write(enter('x', 1, 'a'))
  journal.killing('x', 0)
  write(enter('y', 2, 'a'))
  journal.killing('z', 0)
  write(enter('z', 3, 'b'), enter('v', 4, 'b'))
  expect(journal.judge()).toMatchObject({ killedInside: 1, wrongs: [] })
})
