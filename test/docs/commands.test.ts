import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from './pages.js'

const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>
}
const projects = readFileSync(join(root, 'vitest.config.ts'), 'utf8')

const folder = '.github/workflows'
const workflows = readdirSync(join(root, folder)).map(name => `${folder}/${name}`)

test.each([...workflows, 'AGENTS.md', '.github/pull_request_template.md'])(
  'the commands that %s names are there',
  page => {
    const text = readFileSync(join(root, page), 'utf8')
    const found = (pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, name]) => name!)
    for (const name of found(/\bnpm run ([\w:-]+)/g)) expect(scripts, page).toHaveProperty([name])
    for (const name of found(/--project (\w+)/g)) expect(projects, page).toContain(`project('${name}'`)
    for (const path of found(/\b((?:test|scripts)\/[\w/.-]*\w)/g))
      expect(existsSync(join(root, path)), `${page}: ${path}`).toBe(true)
  },
)
