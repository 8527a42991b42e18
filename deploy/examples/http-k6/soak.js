// What each iteration does; how many there are is set by the plan. Options other than those of the load stay in force.
import http from 'k6/http';

export const options = { discardResponseBodies: true, tags: { lab: 'soak' } };

export default function () {
  http.get(__ENV.TARGET);
}
