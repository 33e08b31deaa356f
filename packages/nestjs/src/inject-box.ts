import { Inject } from '@nestjs/common'

/** The injection token of the application's box, for `inject` of a factory and for `overrideProvider` in tests. */
export const BOX = Symbol.for('signalbox:box')

/** Injects the application's box: `constructor(@InjectBox() private readonly box: Box) {}`. */
export function InjectBox(): ParameterDecorator & PropertyDecorator {
  return Inject(BOX)
}
