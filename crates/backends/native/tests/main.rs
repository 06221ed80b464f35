mod lab;
mod work;
