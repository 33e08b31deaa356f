/**
 * Locks, limits and stores as OpenTelemetry spans and metrics: `import { instrument } from 'signalbox/opentelemetry'`.
 */
export { instrument, type InstrumentOptions } from './instrument.js'
