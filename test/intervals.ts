export { inOrder, overlaps, type Interval } from '../apps/chaos/check/intervals.js'
