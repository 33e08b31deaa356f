import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readme, root } from './pages.js'

const text = readFileSync(join(root, readme), 'utf8')

test('README has at most 1,400 words, as `wc -w` counts them', () => {
  expect(text.split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(1400)
})

test('lines of README have at most 120 characters', () => {
  expect(text.split('\n').filter(line => line.length > 120)).toEqual([])
})

test('README says in words what an engine weakens, before it shows the uses', () => {
  const beginning = text.slice(0, text.indexOf('## Uses'))
  expect(beginning).toContain('<!-- guarantees -->')
  expect(text).not.toMatch(/\bP\d+\b/)
})
