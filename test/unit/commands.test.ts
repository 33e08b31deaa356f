import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import config from '../../vitest.config.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
  scripts: Readonly<Record<string, string>>
}
const projects = config.test!.projects!.map(project => (project as { test: { name: string } }).test.name)

test('each test project is run by exactly one command', () => {
  const commands = ['test', 'test:all', 'test:long'].map(name => scripts[name]!)
  const run = commands.flatMap(command =>
    [...command.matchAll(/--project ([\w-]+)/g)].map(match => match[1]!),
  )
  expect(run.sort()).toEqual([...projects].sort())
})

test('each folder with tests is a project', () => {
  const files = readdirSync(`${root}test`, { recursive: true, encoding: 'utf8' })
  const folders = files.filter(file => file.endsWith('.test.ts')).map(file => file.split('/')[0]!)
  expect([...new Set(folders)].filter(folder => !projects.includes(folder))).toEqual([])
})
