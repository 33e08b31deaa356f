import { describe, test } from 'vitest'
import { checksOf, type Check } from '../../packages/conformance/src/checks.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { adverse, conformance } from '../../packages/conformance/src/index.js'

/**
 * What every engine does, promise by promise. A file can take one part of the checks, so that several processes share
 * those of a slow engine.
 */
export function contractSuite(fixture: EngineFixture, { part, of } = { part: 1, of: 1 }): void {
  const checks = conformance(fixture).filter((_, index) => index % of === part - 1)
  describe(fixture.name, () => register(checks))
}

/**
 * What every engine does under adverse conditions.
 * @param left the names of the checks that are left out; each must be the name of one
 */
export function adverseSuite(fixture: EngineFixture, left: readonly string[] = []): void {
  describe(fixture.name, () => {
    for (const check of without(adverse(fixture), left)) test(check.name, () => check.run(Infinity))
  })
}

/** Some parts of what every engine does, for an engine that differs from another in these. */
export function contractParts(
  fixture: EngineFixture,
  ...parts: readonly ((fixture: EngineFixture) => void)[]
): void {
  contractPartsBut(fixture, [], ...parts)
}

/** The same without some checks. @param left their names without that of the part; each must be the name of one. */
export function contractPartsBut(
  fixture: EngineFixture,
  left: readonly string[],
  ...parts: readonly ((fixture: EngineFixture) => void)[]
): void {
  const checks = checksOf(() => {
    for (const part of parts) part(fixture)
  })
  describe(fixture.name, () => register(without(checks, left)))
}

function without(checks: readonly Check[], left: readonly string[]): Check[] {
  for (const name of left) {
    if (checks.filter(check => isNamed(check, name)).length !== 1) throw new Error(`not one check is ${name}`)
  }
  return checks.filter(check => !left.some(name => isNamed(check, name)))
}

function isNamed(check: Check, name: string): boolean {
  return check.name.endsWith(` > ${name}`)
}

/** Neighbours do much the same, such as starting processes, so they are not run at once: every twelfth check is. */
const APART = 12

function register(checks: readonly Check[]): void {
  const concurrent = checks.filter(check => check.concurrent)
  const spread = Array.from({ length: APART }, (_, rest) =>
    concurrent.filter((_, index) => index % APART === rest),
  )
  // The runner runs adjacent checks at the same time. It limits their time, as its settings say.
  for (const check of spread.flat()) test.concurrent(check.name, () => check.run(Infinity))
  for (const check of checks.filter(check => !check.concurrent)) test(check.name, () => check.run(Infinity))
}
