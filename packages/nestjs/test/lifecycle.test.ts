import type { ModulesContainer } from '@nestjs/core'
import { open } from 'signalbox'
import { openTestBox } from 'signalbox/testing'
import { expect, test } from 'vitest'
import { SignalboxModule } from '../src/index.js'
import { openedBoxes } from '../src/lifecycle.js'

/** Returns the modules of an application whose factories provided these instances. */
function modulesWith(instances: readonly unknown[]): ModulesContainer {
  const providers = new Map(instances.map((instance, index) => [index, { isFactory: true, instance }]))
  return new Map([['module', { providers }]]) as unknown as ModulesContainer
}

test('the boxes of factories are found among mocks, proxies and other values', async () => {
  await using box = await open('memory:')
  await using testBox = await openTestBox()
  const mock = new Proxy({}, { get: () => () => undefined })
  const strict = new Proxy(
    {},
    {
      get: (_, name) => {
        throw new Error(`no property ${String(name)}`)
      },
    },
  )
  const found = openedBoxes(modulesWith([null, undefined, 'text', {}, mock, strict, box, testBox]))
  expect(found).toEqual([box, testBox])
})

test('a mock in the place of the box does not fail the shutdown', async () => {
  const modules = modulesWith([])
  const hooks: { onModuleDestroy(): void }[] = []
  const addProvider = (provider: { useValue: { onModuleDestroy(): void } }): unknown =>
    hooks.push(provider.useValue)
  Object.assign(modules.get('module')!, { addProvider })
  const mock = { mutex: () => undefined, close: () => undefined } as never
  const module = new SignalboxModule(mock, { source: 'memory:' }, modules)
  module.onApplicationBootstrap()
  hooks[0]!.onModuleDestroy()
  await module.onApplicationShutdown()
})
